import type { InferKyselyTable } from '@mikro-orm/sql';
import type { ColumnType, Selectable } from 'kysely';
import * as accounts from '../../accounts/tables.ts';
import { LateAnswerEntity } from '../../cards/late-answers-tables.ts';
import * as cards from '../../cards/tables.ts';
import { CardTransferEntity } from '../../cards/transfers/tables.ts';
import * as deposits from '../../deposits/tables.ts';
import { AccountDayEntity, DayClosingEntity, ReportTransferEntity } from '../../exports/tables.ts';
import { NetworkInboxEntity } from '../../issuers/inbox/tables.ts';
import { LiveNetworkEntity } from '../../issuers/live-network-tables.ts';
import {
  ReconciliationFindingEntity,
  ReconciliationSeenEntity,
} from '../../issuers/reconciliation/tables.ts';
import { RequestBudgetEntity } from '../../issuers/request-budget-tables.ts';
import * as simulatedNetwork from '../../issuers/simulated/tables.ts';
import * as ledger from '../../ledger/tables.ts';
import { PaymentElementEntity, PaymentEntity, SimulatedMessageEntity } from '../../payments/tables.ts';
import { AuditEntryEntity, IdempotencyClaimEntity, LoggedRequestEntity } from '../../requests/tables.ts';
import * as webhooks from '../../webhooks/tables.ts';
import { MeasurementEntity } from '../monitoring/tables.ts';

/** Every table, by its name in statements. */
export const TABLES = {
  partner: accounts.PartnerEntity,
  account_usage: accounts.AccountUsageEntity,
  api_key: accounts.ApiKeyEntity,
  workbench_session: accounts.WorkbenchSessionEntity,
  ring_key: accounts.RingKeyEntity,
  usage_bucket: accounts.UsageBucketEntity,
  api_process: accounts.ApiProcessEntity,
  faucet_credit: accounts.FaucetCreditEntity,
  balance_adjustment: accounts.BalanceAdjustmentEntity,
  adjustment_request: accounts.AdjustmentRequestEntity,
  adjustment_limit: accounts.AdjustmentLimitEntity,
  test_clock_advance: accounts.TestClockAdvanceEntity,
  audit_entry: AuditEntryEntity,
  audit_unchained: accounts.AuditUnchainedEntity,
  audit_chain: accounts.AuditChainEntity,
  product: cards.ProductEntity,
  partner_product: cards.PartnerProductEntity,
  card: cards.CardEntity,
  card_count: cards.CardCountEntity,
  card_transfer: CardTransferEntity,
  card_transaction: cards.CardTransactionEntity,
  true_up: cards.TrueUpEntity,
  card_authorization: cards.CardAuthorizationEntity,
  payment: PaymentEntity,
  payment_element: PaymentElementEntity,
  simulated_message: SimulatedMessageEntity,
  spending_counter: cards.SpendingCounterEntity,
  card_reveal: cards.CardRevealEntity,
  reveal_link: cards.RevealLinkEntity,
  refused_reveal: cards.RefusedRevealEntity,
  idempotency_claim: IdempotencyClaimEntity,
  logged_request: LoggedRequestEntity,
  late_answer: LateAnswerEntity,
  event: webhooks.EventEntity,
  webhook_endpoint: webhooks.WebhookEndpointEntity,
  delivery: webhooks.DeliveryEntity,
  delivery_attempt: webhooks.DeliveryAttemptEntity,
  webhook_allowance: webhooks.WebhookAllowanceEntity,
  webhook_replay: webhooks.WebhookReplayEntity,
  day_closing: DayClosingEntity,
  account_day: AccountDayEntity,
  deposit: deposits.DepositEntity,
  deposit_payment: deposits.DepositPaymentEntity,
  unconfirmed_payment: deposits.UnconfirmedPaymentEntity,
  deposit_resolution: deposits.DepositResolutionEntity,
  chain_scan: deposits.ChainScanEntity,
  live_network: LiveNetworkEntity,
  measurement: MeasurementEntity,
  network_inbox: NetworkInboxEntity,
  request_budget: RequestBudgetEntity,
  report_transfer: ReportTransferEntity,
  reconciliation_finding: ReconciliationFindingEntity,
  reconciliation_seen: ReconciliationSeenEntity,
  'ledger.account': ledger.LedgerAccountEntity,
  'ledger.code': ledger.LedgerCodeEntity,
  'ledger.transfer': ledger.LedgerTransferEntity,
  'ledger.entry': ledger.LedgerEntryEntity,
  'simulated_network.operation': simulatedNetwork.SimulatedOperationEntity,
  'simulated_network.card': simulatedNetwork.SimulatedCardEntity,
  'simulated_network.callback': simulatedNetwork.SimulatedCallbackEntity,
};

/** Every entity the ORM maps. */
export const ENTITIES = Object.values(TABLES);

/** The tables' rows as the driver reads and writes them. Kysely types statements by these. */
export type Tables = { [Name in keyof typeof TABLES]: RawTable<InferKyselyTable<(typeof TABLES)[Name]>> };

/** A row as the driver returns it: these columns, or all. */
export type Row<
  Name extends keyof Tables,
  Columns extends keyof Tables[Name] = keyof Tables[Name],
> = Selectable<Pick<Tables[Name], Columns>>;

type RawTable<Table> = { [Column in keyof Table]: RawColumn<Table[Column]> };

type RawColumn<Value> = [Value] extends [ColumnType<infer Selected, infer Inserted, infer Updated>]
  ? ColumnType<Given<Selected>, Taken<Inserted>, Taken<Updated>>
  : ColumnType<Given<Value>, Taken<Value>, Taken<Value>>;

/**
 * The driver returns timestamps as text, and binary data in buffers. bigint and numeric are text in the
 * entities too.
 */
type Given<Value> = Value extends Date ? string : Value extends Uint8Array ? Buffer : Value;
type Taken<Value> = Value extends Date ? Date | string : Value;
