import { useState } from 'react';
import type {
  ApiKey,
  CreateApiKeyRequest,
  RotateApiKeyRequest,
  Scope,
} from '../../client/generated/types.gen.ts';
import { useAction, useList } from '../reading.ts';
import { ChecksField, FormDialog, SelectField, TextField } from '../ui/form.tsx';
import { Actions, Button, Empty, PageHead, Status, Time } from '../ui/parts.tsx';
import { SecretDialog } from '../ui/secret-dialog.tsx';
import { ListTable } from '../ui/table.tsx';
import { useWorkbench } from '../workbench.ts';

type Open = { kind: 'create' } | { kind: 'rotate' | 'revoke'; key: ApiKey } | { kind: 'made'; key: ApiKey };

export function Keys() {
  const { api } = useWorkbench();
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  const list = useList(['keys'], (query, options) => api.apiKeys.list(query, options));
  const onMade = (key: ApiKey) => setOpen({ kind: 'made', key });
  return (
    <>
      <PageHead title="Keys">
        <Button kind="primary" data-new onClick={() => setOpen({ kind: 'create' })}>
          Create a key
        </Button>
      </PageHead>
      <ListTable
        label="API keys"
        list={list}
        empty={<Empty title="No keys">A key is what your servers send.</Empty>}
        columns={[
          {
            head: 'Key',
            cell: ({ name, prefix }) => (
              <>
                {name ?? 'Without a name'} <code>{prefix}…</code>
              </>
            ),
          },
          { head: 'Status', cell: ({ status }) => <Status of={status} /> },
          {
            head: 'Scopes',
            isWide: true,
            cell: ({ scopes }) => <span title={scopes.join(', ')}>{scopes.length} scopes</span>,
          },
          {
            head: 'Last used',
            isWide: true,
            cell: ({ last_used_at }) => <Time at={last_used_at} none="Never" />,
          },
          { head: 'Expires', isWide: true, cell: ({ expires_at }) => <Time at={expires_at} none="Never" /> },
          {
            head: 'Actions',
            cell: (key) =>
              key.status === 'active' && (
                <Actions>
                  <Button
                    small
                    aria-label={`Rotate ${key.name ?? key.prefix}`}
                    onClick={() => setOpen({ kind: 'rotate', key })}
                  >
                    Rotate
                  </Button>
                  <Button
                    small
                    kind="danger"
                    aria-label={`Revoke ${key.name ?? key.prefix}`}
                    onClick={() => setOpen({ kind: 'revoke', key })}
                  >
                    Revoke
                  </Button>
                </Actions>
              ),
          },
        ]}
      />
      {open?.kind === 'create' && <CreateDialog onClose={close} onMade={onMade} />}
      {open?.kind === 'rotate' && <RotateDialog apiKey={open.key} onClose={close} onMade={onMade} />}
      {open?.kind === 'revoke' && <RevokeDialog apiKey={open.key} onClose={close} />}
      {open?.kind === 'made' && (
        <SecretDialog title="The new key" secret={open.key.key ?? ''} onClose={close} />
      )}
    </>
  );
}

function CreateDialog({ onClose, onMade }: { onClose: () => void; onMade: (key: ApiKey) => void }) {
  const { session, api } = useWorkbench();
  const create = useAction((body: CreateApiKeyRequest) => api.apiKeys.create(body), onMade);
  return (
    <FormDialog
      title="Create a key"
      action={create}
      submit="Create"
      onClose={onClose}
      toInput={(typed) => {
        const expires = typed.text('expires_at');
        return {
          name: typed.text('name') ?? '',
          scopes: typed.checked('scopes') as Scope[],
          ...(expires && { expires_at: new Date(expires).toISOString() }),
        };
      }}
    >
      <TextField name="name" label="Name" hint="What you recognise it by." />
      <ChecksField
        name="scopes"
        label="Scopes"
        hint="Only what this session may do."
        options={session.scopes}
        chosen={session.scopes.filter((scope) => scope !== 'api_keys:write')}
      />
      <TextField
        name="expires_at"
        label="Expires"
        type="datetime-local"
        hint="Leave empty to expire with this session’s key."
      />
    </FormDialog>
  );
}

const OVERLAPS = [
  ['0', 'None: the old key ends at once'],
  ['3600', 'An hour'],
  ['86400', 'A day'],
  ['604800', 'A week'],
] as const;

function RotateDialog({
  apiKey,
  onClose,
  onMade,
}: {
  apiKey: ApiKey;
  onClose: () => void;
  onMade: (key: ApiKey) => void;
}) {
  const { api } = useWorkbench();
  const rotate = useAction((body: RotateApiKeyRequest) => api.apiKeys.rotate(apiKey.id, body), onMade);
  return (
    <FormDialog
      title={`Rotate ${apiKey.name ?? apiKey.prefix}`}
      action={rotate}
      submit="Rotate"
      onClose={onClose}
      toInput={(typed) => ({ overlap_seconds: Number(typed.text('overlap_seconds')) })}
    >
      <SelectField
        name="overlap_seconds"
        label="How long the old key still works"
        options={OVERLAPS}
        defaultValue="86400"
      />
    </FormDialog>
  );
}

function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const { api, say } = useWorkbench();
  const revoke = useAction(
    async (_: Record<string, never>) => api.apiKeys.revoke(apiKey.id),
    () => {
      say('The key is revoked.');
      onClose();
    },
  );
  return (
    <FormDialog
      title={`Revoke ${apiKey.name ?? apiKey.prefix}?`}
      action={revoke}
      submit="Revoke"
      isDestroying
      onClose={onClose}
      toInput={() => ({})}
    >
      <p>It stops working within 5 seconds, for good. If it made this session, the session ends with it.</p>
    </FormDialog>
  );
}
