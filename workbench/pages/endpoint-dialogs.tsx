import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { EVENT_TYPES } from '../../client/generated/resources.gen.ts';
import type {
  CreateWebhookEndpointRequest,
  EventType,
  ReplayRequest,
  UpdateWebhookEndpointRequest,
  WebhookEndpoint,
} from '../../client/generated/types.gen.ts';
import { changedFields } from '../changed-fields.ts';
import { useAction } from '../reading.ts';
import { CheckField, ChecksField, FormDialog, SelectField, TextField, type Typed } from '../ui/form.tsx';
import { useWorkbench } from '../workbench.ts';

/** Adds an endpoint, or changes the one that is given. */
export function EndpointDialog({
  endpoint: current,
  onClose,
  onAdded,
}: {
  endpoint?: WebhookEndpoint;
  onClose: () => void;
  onAdded?: (endpoint: WebhookEndpoint) => void;
}) {
  const { api, say } = useWorkbench();
  // As it was when the dialog was opened: what is on the screen is read again while somebody types.
  const [endpoint] = useState(current);
  const save = useAction(
    (body: UpdateWebhookEndpointRequest) =>
      endpoint === undefined
        ? api.webhookEndpoints.create(body as CreateWebhookEndpointRequest)
        : api.webhookEndpoints.update(endpoint.id, body),
    (saved) => {
      say(endpoint === undefined ? 'The endpoint is added.' : 'The endpoint is changed.');
      if (onAdded === undefined) onClose();
      else onAdded(saved);
    },
  );
  const toInput = (typed: Typed) => {
    const types = typed.checked('event_types') as EventType[];
    const input = {
      url: typed.text('url') ?? '',
      description: typed.text('description') ?? null,
      event_types: types.length === 0 ? null : types,
      standard_webhooks: typed.checked('standard_webhooks').length > 0,
      ...(endpoint && {
        status: typed.checked('enabled').length > 0 ? ('enabled' as const) : ('disabled' as const),
      }),
    };
    if (endpoint === undefined) return input;
    const chosen = EVENT_TYPES.filter((type) => endpoint.event_types?.includes(type));
    return changedFields<UpdateWebhookEndpointRequest>(
      { ...endpoint, event_types: endpoint.event_types && chosen },
      input,
    );
  };
  return (
    <FormDialog
      title={endpoint === undefined ? 'Add an endpoint' : 'Change the endpoint'}
      action={save}
      submit={endpoint === undefined ? 'Add' : 'Save'}
      onClose={onClose}
      toInput={toInput}
    >
      <TextField
        name="url"
        label="URL"
        type="url"
        placeholder="https://"
        defaultValue={endpoint?.url ?? ''}
      />
      <TextField
        name="description"
        label="Description"
        hint="Optional."
        defaultValue={endpoint?.description ?? ''}
      />
      <ChecksField
        name="event_types"
        label="Types"
        hint="None chosen: all types, future ones included."
        options={EVENT_TYPES}
        chosen={endpoint?.event_types ?? []}
      />
      <CheckField
        name="standard_webhooks"
        label="Send the Standard Webhooks headers, too"
        defaultChecked={endpoint?.standard_webhooks ?? false}
      />
      {endpoint && (
        <CheckField name="enabled" label="Enabled" defaultChecked={endpoint.status === 'enabled'} />
      )}
    </FormDialog>
  );
}

export function RotateDialog({
  id,
  onClose,
  onRotated,
}: {
  id: string;
  onClose: () => void;
  onRotated: (endpoint: WebhookEndpoint) => void;
}) {
  const { api } = useWorkbench();
  const rotate = useAction((_: Record<string, never>) => api.webhookEndpoints.rotateSecret(id), onRotated);
  return (
    <FormDialog
      title="Rotate the secret?"
      action={rotate}
      submit="Rotate"
      onClose={onClose}
      toInput={() => ({})}
    >
      <p>We sign with the new secret from now on, and for 24 hours with the previous one, too.</p>
    </FormDialog>
  );
}

export function DeleteDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { api, say } = useWorkbench();
  const navigate = useNavigate();
  const remove = useAction(
    async (_: Record<string, never>) => api.webhookEndpoints.delete(id),
    () => {
      say('The endpoint is deleted.');
      void navigate({ to: '/endpoints' });
    },
  );
  return (
    <FormDialog
      title="Delete the endpoint?"
      action={remove}
      submit="Delete"
      isDestroying
      onClose={onClose}
      toInput={() => ({})}
    >
      <p>Nothing more is sent there, and what was not delivered is given up.</p>
    </FormDialog>
  );
}

export function ReplayDialog({
  endpointId,
  onClose,
  onBegun,
}: {
  endpointId: string;
  onClose: () => void;
  onBegun: (replayId: string) => void;
}) {
  const { api } = useWorkbench();
  const replay = useAction(
    (body: ReplayRequest) => api.webhookEndpoints.replay(endpointId, body),
    ({ id }) => onBegun(id),
  );
  const toIso = (text: string | undefined) => (text === undefined ? undefined : new Date(text).toISOString());
  return (
    <FormDialog
      title="Replay events"
      action={replay}
      submit="Replay"
      onClose={onClose}
      toInput={(typed) => {
        const until = toIso(typed.text('created_lte'));
        return {
          created_gte: toIso(typed.text('created_gte')) ?? '',
          ...(until && { created_lte: until }),
          status: typed.text('status') as NonNullable<ReplayRequest['status']>,
        };
      }}
    >
      <TextField name="created_gte" label="From" type="datetime-local" />
      <TextField name="created_lte" label="Until" type="datetime-local" hint="Empty: until now." />
      <SelectField
        name="status"
        label="Which"
        options={[
          ['undelivered', 'What was not delivered'],
          ['given_up', 'What was given up'],
          ['all', 'All'],
        ]}
      />
    </FormDialog>
  );
}
