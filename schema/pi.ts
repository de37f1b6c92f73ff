// pith protocol, dialect pi. Generated from the schema beside it; see docs/protocol.md.

/** Stops the run, then prompts. */
export type AbortAndPromptCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "abort_and_prompt";
  message: string;
  images?: {
    type: "image";
    /** Base64 without a data-URL prefix. */
    data: string;
    mimeType: string;
  }[] | null;
};

export type AbortAndPromptResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "abort_and_prompt";
  success: true;
  data: PromptDisposition;
};

export type AbortBashCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "abort_bash";
  targetId?: unknown;
};

export type AbortBashResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "abort_bash";
  success: true;
};

/** Stops the run; answered when it has stopped. */
export type AbortCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "abort";
};

export type AbortResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "abort";
  success: true;
};

export type AbortRetryCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "abort_retry";
};

export type AbortRetryResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "abort_retry";
  success: true;
};

/** What a host can live with beyond what its dialect says. Keys and words pith does not know are left out of the answer's `accepted`. */
export type Accept = {
  /** `agent_settled` also follows a prompt that is `handled` while nothing runs. */
  settledWhenHandled: boolean | null;
  /** As `set_stream_updates`. */
  streamUpdates: StreamUpdates | null;
  /** Questions whether tool calls may run come as `permission_request`. */
  permissionRequest: boolean | null;
};

export type AgentEndEvent = {
  type: "agent_end";
  messages: Message[];
  willRetry: boolean;
};

export type AgentSettledEvent = {
  type: "agent_settled";
  aborted: boolean;
  /** The limit of the session that ended the work. */
  limit?: LimitUse;
};

export type AgentStartEvent = {
  type: "agent_start";
};

/** A number that is written without a fraction if it has none. */
export type Amount = number;

/** The modes of a session as editors name them: a [`PermissionMode`] each, all but `deny`. */
export type ApprovalMode = "full" | "write" | "ask" | "read-only";

/** One answer of a model. */
export type AssistantMessage = {
  role: "assistant";
  content: Block[];
  api: string;
  provider: string;
  model: string;
  usage: Usage;
  stopReason: StopReason;
  timestamp: number;
  errorMessage?: string;
  responseId?: string;
  /** Only when it differs from the requested model. */
  responseModel?: string;
  /** The vendor's own word. */
  rawStopReason?: string;
  /** What went wrong, for programs. */
  error?: Failure;
  diagnostics?: unknown;
};

/** Answer of `get_audit`. */
export type Audit = {
  /** In file order, every branch. */
  entries: custom2[];
};

/** One thing that happened. A `kind` of a later version is kept as it is. */
export type AuditRecord = PermissionRecord & {
  kind: "permission";
} | SandboxRecord & {
  kind: "sandbox";
} | DeniedRecord & {
  kind: "denied";
} | LimitRecord & {
  kind: "limit";
} | RestoreRecord & {
  kind: "restore";
} | Record<string, unknown>;

export type AutoRetryEndEvent = {
  type: "auto_retry_end";
  success: boolean;
  attempt: number;
  finalError?: string;
};

export type AutoRetryStartEvent = {
  type: "auto_retry_start";
  attempt: number;
  maxAttempts: number;
  delayMs: number;
  errorMessage: string;
};

export type BashCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "bash";
  command: string;
  excludeFromContext?: boolean | null;
};

/** A command the host ran with the `bash` command. */
export type BashExecution = {
  role: "bashExecution";
  command: string;
  output: string;
  exitCode?: number;
  cancelled: boolean;
  truncated: boolean;
  fullOutputPath?: string;
  excludeFromContext?: boolean;
  timestamp: number;
};

export type BashExecutionUpdateEvent = {
  type: "bash_execution_update";
  /** That of the `bash` command. */
  id?: unknown;
  delta: string;
};

export type BashResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "bash";
  success: true;
  data: BashResult;
};

/** Answer of `bash`: the union of what pi and xcsh hosts read. */
export type BashResult = {
  output: string;
  exitCode?: number;
  cancelled: boolean;
  truncated: boolean;
  fullOutputPath?: string;
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
};

/** One piece of a message. Kinds we do not know round-trip untouched. */
export type Block = TextBlock & {
  type: "text";
} | ImageBlock & {
  type: "image";
} | ThinkingBlock & {
  type: "thinking";
} | ToolCall & {
  type: "toolCall";
} | {
  type: string;
};

export type BranchCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "branch";
  entryId: string;
  restoreFiles?: boolean | null;
};

export type BranchResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "branch";
  success: true;
  data: Forked;
};

/** Stands for a branch that was left. */
export type BranchSummary = {
  role: "branchSummary";
  summary: string;
  fromId: string | null;
  timestamp: number;
};

/** What happened on a branch that was left. */
export type BranchSummaryEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  /** The leaf that was left, or `root`. */
  fromId: string;
  summary: string;
  details?: unknown;
  usage?: Usage;
  /** An extension wrote it. */
  fromHook?: boolean;
};

/** Answer of session-replacing commands. */
export type Cancelled = {
  cancelled: boolean;
};

/** What can be sent and what can come. */
export type Capabilities = {
  commands: string[];
  events: string[];
  uiMethods: string[];
  streamUpdates: StreamUpdates[];
  limits: Limits;
};

/** Whether a checkpoint covers all that its call may have changed. */
export type CheckpointCoverage = "full" | "partial";

/** A file that a call has changed. */
export type CheckpointFile = {
  /** Relative to the session's directory, absolute outside of it. */
  path: string;
  change: FileChange;
  /** The size before the call; of a new file, after it. */
  bytes: number;
};

/** Answer of `list_checkpoints`. */
export type Checkpoints = {
  /** Newest first. */
  checkpoints: ListedCheckpoint[];
};

/** Empties both queues and returns what was in them. */
export type ClearQueueCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "clear_queue";
};

export type ClearQueueResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "clear_queue";
  success: true;
  data: Queues;
};

/** Who is speaking. Nothing depends on it. */
export type Client = {
  name: string | null;
  version: string | null;
};

export type CloneCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "clone";
};

export type CloneResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "clone";
  success: true;
  data: Cancelled;
};

/** Two resources of the same name; the first one found is used. */
export type Collision = {
  /** `skill` or `prompt`. */
  resourceType: string;
  name: string;
  winnerPath: string;
  loserPath: string;
};

/** What a host asks for. */
export type Command = HelloCommand | PromptCommand | SteerCommand | FollowUpCommand | AbortCommand | AbortAndPromptCommand | ClearQueueCommand | SetSteeringModeCommand | SetFollowUpModeCommand | SetInterruptModeCommand | SetStreamUpdatesCommand | GetStateCommand | GetMessagesCommand | GetLastAssistantTextCommand | GetSessionStatsCommand | GetCommandsCommand | GetDiagnosticsCommand | SetSandboxCommand | PauseCommand | ResumeCommand | SetLimitsCommand | GetPermissionsCommand | SetPermissionsCommand | SetApprovalModeCommand | ReloadCommand | SetModelCommand | CycleModelCommand | GetAvailableModelsCommand | SetThinkingLevelCommand | CycleThinkingLevelCommand | GetAvailableThinkingLevelsCommand | CompactCommand | SetAutoCompactionCommand | SetAutoRetryCommand | AbortRetryCommand | BashCommand | AbortBashCommand | NewSessionCommand | SwitchSessionCommand | ForkCommand | BranchCommand | CloneCommand | GetForkMessagesCommand | GetBranchMessagesCommand | GetEntriesCommand | GetAuditCommand | GetTreeCommand | ListSessionsCommand | NavigateTreeCommand | SetLabelCommand | SetSessionNameCommand | ExportHtmlCommand | ListCheckpointsCommand | RestoreCheckpointCommand | SetMcpServersCommand | GetMcpServersCommand | McpReconnectCommand | McpLoginCommand | SetMcpEnabledCommand | SetTodosCommand | SetHostToolsCommand | SetLocaleCommand | GetIntegrationsCommand;

/** A simple command, and what is thought of it. */
export type CommandPart = {
  words: string[];
  verdict: Verdict;
  rule?: string;
};

/** Answer of `get_commands`. */
export type Commands = {
  commands: OfferedCommand[];
};

export type CompactCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "compact";
  customInstructions?: string | null;
};

export type CompactResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "compact";
  success: true;
  data: CompactionResult;
};

export type CompactionEndEvent = {
  type: "compaction_end";
  reason: CompactionReason;
  result: CompactionResult | null;
  aborted: boolean;
  willRetry: boolean;
  errorMessage?: string;
};

/** Everything before `firstKeptEntryId` is replaced by a summary. */
export type CompactionEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  summary: string;
  firstKeptEntryId: string;
  tokensBefore: number;
  details?: unknown;
  usage?: Usage;
  /** An extension wrote it. */
  fromHook?: boolean;
};

/** Why a conversation is being shortened. */
export type CompactionReason = "manual" | "threshold" | "overflow";

/** Answer of `compact`, and the `result` of the event that ends a compaction. */
export type CompactionResult = {
  summary: string;
  /** The oldest entry that the model still sees as it is. */
  firstKeptEntryId: string;
  tokensBefore: number;
  estimatedTokensAfter: number;
  /** What the summary has cost; absent when an extension wrote it. */
  usage?: Usage;
  /** `readFiles` and `modifiedFiles`, or whatever the extension that wrote the summary says. */
  details?: unknown;
};

export type CompactionStartEvent = {
  type: "compaction_start";
  reason: CompactionReason;
};

/** Stands for everything a compaction removed. */
export type CompactionSummary = {
  role: "compactionSummary";
  summary: string;
  tokensBefore: number;
  timestamp: number;
};

/** What is known of the model's provider without asking it. */
export type Connection = {
  state: ConnectionState;
  provider?: string;
};

/** Whether a prompt to the model has a chance. */
export type ConnectionState = "connected" | "no_provider" | "auth_error";

/** Content of user-like messages: a string in old files, blocks everywhere else. */
export type Content = string | Block[];

/** Changes how the model sees an earlier message; `null` hides it. */
export type ContextEditEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  targetId: string;
  replacement: Replacement | null;
};

/** How full the model's window is; unknown right after a compaction. */
export type ContextUsage = {
  tokens: number | null;
  contextWindow: number;
  percent: number | null;
};

/** US dollars. */
export type Cost = {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
};

/** Data of an extension, out of the model's sight. */
export type CustomEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  customType: string;
  data?: unknown;
};

/** A message placed by an extension. */
export type CustomMessage = {
  role: "custom";
  customType: string;
  content: Content;
  display: boolean;
  details?: unknown;
  timestamp: number;
};

/** A message placed by an extension. */
export type CustomMessageEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  customType: string;
  content: Content;
  display: boolean;
  details?: unknown;
};

export type CycleModelCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "cycle_model";
};

export type CycleModelResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "cycle_model";
  success: true;
  data: CycledModel | null;
};

export type CycleThinkingLevelCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "cycle_thinking_level";
};

export type CycleThinkingLevelResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "cycle_thinking_level";
  success: true;
  data: Level | null;
};

/** Answer of `cycle_model`. */
export type CycledModel = {
  model: Model;
  thinkingLevel: ThinkingLevel;
  isScoped: boolean;
};

/** What a tool call did not get. */
export type DeniedRecord = {
  toolCallId: string;
  tool: string;
  denied: SandboxDenial;
  target?: string;
  /** What a host was refused by, as its command was told. */
  reason?: string;
};

/** One finding about a file, a directory or a setting. */
export type Diagnostic = {
  type: DiagnosticKind;
  message: string;
  path?: string;
  /** Stable name of the finding. */
  code: string;
  /** Who lost against whom, for collisions. */
  collision?: Collision;
};

/** How much a finding matters. */
export type DiagnosticKind = "warning" | "error" | "collision";

/** Answer of `get_diagnostics`. */
export type Diagnostics = {
  diagnostics: Diagnostic[];
};

/** What became of a prompt. */
export type Disposition = "started" | "queued" | "handled";

/** A tool as the model is told of it. */
export type DumpedTool = {
  name: string;
  description: string;
  /** A JSON Schema. */
  parameters: unknown;
};

/** Answer of `get_entries`. */
export type Entries = {
  /** In file order, every branch. */
  entries: Entry[];
  /** Where the next entry will be attached; `null` before the first. */
  leafId: string | null;
};

/** Any other line. Types we do not know round-trip untouched. */
export type Entry = MessageEntry & {
  type: "message";
} | ModelChangeEntry & {
  type: "model_change";
} | ThinkingLevelChangeEntry & {
  type: "thinking_level_change";
} | SessionInfoEntry & {
  type: "session_info";
} | LabelEntry & {
  type: "label";
} | CompactionEntry & {
  type: "compaction";
} | BranchSummaryEntry & {
  type: "branch_summary";
} | CustomEntry & {
  type: "custom";
} | CustomMessageEntry & {
  type: "custom_message";
} | ContextEditEntry & {
  type: "context_edit";
} | UsageEntry & {
  type: "usage";
} | {
  type: string;
};

export type EntryAppendedEvent = {
  type: "entry_appended";
  entry: Entry;
};

/** Stable names of failures. The text of a failure may change, its code does not; hosts ignore codes they do not know. */
export type ErrorCode = "parse_error" | "unknown_command" | "missing_field" | "invalid_field" | "busy" | "compacting" | "no_model" | "model_not_found" | "model_unusable" | "aborted" | "closing" | "nothing_to_compact" | "cancelled" | "summary_failed" | "session_not_found" | "session_invalid" | "session_in_use" | "directory_missing" | "entry_not_found" | "checkpoint_not_found" | "nothing_there" | "io_error" | "not_queueable" | "host_tool_refused" | "sandbox_refused" | "limit_reached" | "mcp_refused" | "extension_failed" | "shell_failed" | "internal_error";

/** Classes of failure a caller treats differently. */
export type ErrorKind = "auth" | "rate_limit" | "overloaded" | "overflow" | "quota" | "invalid_request" | "network" | "timeout" | "protocol" | "limit";

/** What pith tells without being asked. */
export type Event = AgentStartEvent | AgentEndEvent | AgentSettledEvent | TurnStartEvent | TurnEndEvent | MessageStartEvent | MessageEndEvent | MessageUpdateEvent | ToolExecutionStartEvent | ToolExecutionUpdateEvent | ToolExecutionEndEvent | QueueUpdateEvent | CompactionStartEvent | CompactionEndEvent | AutoRetryStartEvent | AutoRetryEndEvent | ThinkingLevelChangedEvent | SessionInfoChangedEvent | EntryAppendedEvent | BashExecutionUpdateEvent | SummarizationRetryScheduledEvent | SummarizationRetryAttemptStartEvent | SummarizationRetryFinishedEvent | ExtensionErrorEvent | TodoReminderEvent | TodoAutoClearEvent | RetryFallbackAppliedEvent | RetryFallbackSucceededEvent | McpServerUpdateEvent | SandboxDeniedEvent | LimitReachedEvent | LoopSuspectedEvent | PausedEvent | ResumedEvent;

export type ExportHtmlCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "export_html";
  outputPath?: string | null;
};

export type ExportHtmlResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "export_html";
  success: true;
  data: Exported;
};

/** Answer of `export_html`. */
export type Exported = {
  /** Absolute. */
  path: string;
};

export type ExtensionErrorEvent = {
  type: "extension_error";
  extensionPath: string;
  event: string;
  error: string;
};

/** The answer to a dialog: one of `value`, `confirmed` and `cancelled`. */
export type ExtensionUiResponse = {
  value?: string;
  confirmed?: boolean;
  cancelled?: true;
  type: "extension_ui_response";
  /** That of the request. */
  id: string;
};

export type FailedResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  /** Or `parse`, for a line that names none. */
  command: string;
  success: false;
  /** For people. */
  error: string;
  code: ErrorCode;
  /** The id of an unknown command, in dialect xcsh. */
  requestId?: unknown;
};

/** A failed model call in structured form; retry and compaction act on the kind. */
export type Failure = {
  kind: ErrorKind;
  status?: number;
  retryAfterMs?: number;
  requestId?: string;
  /** `false` when the server wants no further request, whatever the kind. */
  shouldRetry?: boolean;
};

/** What happened to a file. */
export type FileChange = "created" | "modified" | "deleted";

/** An entry in a list. */
export type FlatNode = {
  id: string;
  parentId: string | null;
  entry: Entry;
  /** Its bookmark. */
  label?: string;
  /** When the bookmark was put there. */
  labelTimestamp?: string;
};

/** Queues a message for when the run would end. */
export type FollowUpCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "follow_up";
  message: string;
  images?: {
    type: "image";
    /** Base64 without a data-URL prefix. */
    data: string;
    mimeType: string;
  }[] | null;
};

export type FollowUpResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "follow_up";
  success: true;
  data: PromptDisposition;
};

export type ForkCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "fork";
  entryId: string;
  restoreFiles?: boolean | null;
};

/** A prompt that can be forked from. */
export type ForkMessage = {
  entryId: string;
  text: string;
};

/** Answer of `get_fork_messages` and `get_branch_messages`. */
export type ForkMessages = {
  messages: ForkMessage[];
};

export type ForkResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "fork";
  success: true;
  data: Forked;
};

/** Answer of `fork` and `branch`. */
export type Forked = {
  /** The prompt that was taken back, for editing; absent when cancelled. */
  text?: string;
  cancelled: boolean;
  /** The files that went back, if the host asked for that. */
  restored?: string[];
  /** Those that stay as they are. */
  skipped?: SkippedFile[];
};

/** A line of stdin. */
export type FromHost = Command | ExtensionUiResponse | PermissionResponse | HostToolUpdate | HostToolResult;

/** A line of stdout. */
export type FromPith = Response | Event | UiRequest | HostToolFrame | PermissionFrame | SessionHeader | ResultRecord;

/** What was asked, allowed and refused: the entries of the audit, or those after one. */
export type GetAuditCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_audit";
  since?: string | null;
};

export type GetAuditResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_audit";
  success: true;
  data: Audit;
};

export type GetAvailableModelsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_available_models";
};

export type GetAvailableModelsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_available_models";
  success: true;
  data: Models;
};

export type GetAvailableThinkingLevelsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_available_thinking_levels";
};

export type GetAvailableThinkingLevelsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_available_thinking_levels";
  success: true;
  data: Levels;
};

export type GetBranchMessagesCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_branch_messages";
};

export type GetBranchMessagesResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_branch_messages";
  success: true;
  data: ForkMessages;
};

export type GetCommandsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_commands";
};

export type GetCommandsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_commands";
  success: true;
  data: Commands;
};

/** What is wrong with settings, models and resources. */
export type GetDiagnosticsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_diagnostics";
};

export type GetDiagnosticsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_diagnostics";
  success: true;
  data: Diagnostics;
};

export type GetEntriesCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_entries";
  since?: string | null;
};

export type GetEntriesResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_entries";
  success: true;
  data: Entries;
};

export type GetForkMessagesCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_fork_messages";
};

export type GetForkMessagesResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_fork_messages";
  success: true;
  data: ForkMessages;
};

export type GetIntegrationsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_integrations";
};

export type GetIntegrationsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_integrations";
  success: true;
  data: Integrations;
};

export type GetLastAssistantTextCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_last_assistant_text";
};

export type GetLastAssistantTextResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_last_assistant_text";
  success: true;
  data: LastText;
};

/** The MCP servers and their tools; `connect` starts those that do not run. */
export type GetMcpServersCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_mcp_servers";
  connect?: boolean | null;
};

export type GetMcpServersResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_mcp_servers";
  success: true;
  data: McpServers;
};

export type GetMessagesCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_messages";
};

export type GetMessagesResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_messages";
  success: true;
  data: Messages;
};

/** The rules about tool calls, and the mode for calls that no rule is about. */
export type GetPermissionsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_permissions";
};

export type GetPermissionsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_permissions";
  success: true;
  data: Permissions;
};

export type GetSessionStatsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_session_stats";
};

export type GetSessionStatsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_session_stats";
  success: true;
  data: SessionStats;
};

export type GetStateCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_state";
};

export type GetStateResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_state";
  success: true;
  data: State;
};

/** All entries, nested by parent, or as one list with `flat`. */
export type GetTreeCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "get_tree";
  flat?: boolean | null;
};

export type GetTreeResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "get_tree";
  success: true;
  data: Tree;
};

/** Answer of `hello`. */
export type Greeting = {
  /** Grows with every change that could break a host; additions do not count. */
  protocolVersion: number;
  /** `pi` or `xcsh`. */
  dialect: string;
  server: Server;
  capabilities: Capabilities;
  /** The keys of `accept` that are in force. */
  accepted: string[];
};

/** One step in which an answer grows. */
export type Growth = ({
  type: "text_start";
} | {
  type: "text_delta";
  delta: string;
} | {
  type: "text_end";
  content: string;
} | {
  type: "thinking_start";
} | {
  type: "thinking_delta";
  delta: string;
} | {
  type: "thinking_end";
  content: string;
} | {
  type: "toolcall_start";
  id: string;
  toolName: string;
} | {
  type: "toolcall_delta";
  delta: string;
} | {
  type: "toolcall_end";
  toolCall: Block;
}) & {
  /** Which block of the content grows. */
  contentIndex: number;
  /** The whole message so far; only with stream updates `full`. */
  partial?: Message;
};

/** Says who the host is and what it accepts; answers what pith can do. Optional, at any time, the last one counts. */
export type HelloCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "hello";
  client?: Client | null;
  accept?: Accept | null;
};

export type HelloResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "hello";
  success: true;
  data: Greeting;
};

/** A tool call handed to the host, and its withdrawal. */
export type HostToolFrame = {
  type: "host_tool_call";
  id: string;
  toolCallId: string;
  toolName: string;
  arguments: Record<string, unknown>;
} | {
  type: "host_tool_cancel";
  id: string;
  targetId: string;
};

/** The definition of a tool. One that was read has texts without space around them, and an object as schema. */
export type HostToolInput = {
  name: string;
  /** What the model reads. */
  description: string;
  /** A JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** For people; the name if there is none. */
  label?: string | null;
  /** Known, but not shown to the model. */
  hidden?: boolean;
};

/** Answer of `set_host_tools`. */
export type HostToolNames = {
  toolNames: string[];
};

/** The result of a tool of the host. */
export type HostToolResult = {
  result: {
    content: Block[];
    details?: unknown;
  };
  isError?: boolean;
  type: "host_tool_result";
  /** That of the request. */
  id: string;
};

/** Progress of a tool of the host. */
export type HostToolUpdate = {
  partialResult: {
    content: Block[];
    details?: unknown;
  };
  type: "host_tool_update";
  /** That of the request. */
  id: string;
};

/** An inline image: base64 without a data-URL prefix. */
export type ImageBlock = {
  data: string;
  mimeType: string;
};

/** Limits on pictures. */
export type ImageLimits = {
  maxPerMessage?: number;
  maxPerRequest?: number;
  resize?: ImageResize;
};

/** The largest picture sent as it is; bigger ones are scaled down to this. */
export type ImageResize = {
  maxWidth: number;
  maxHeight: number;
  /** Of the base64 text. */
  maxBytes: number;
  jpegQuality: number;
};

/** Limits on what one request may carry. */
export type InputLimits = {
  maxRequestBytes?: number;
  images?: ImageLimits;
};

/** Answer of `get_integrations`. */
export type Integrations = {
  version: string;
  model: Connection;
  /** pith has none; hosts of xcsh read the key. */
  services: Service[];
};

/** Whether steering disturbs a running tool batch. */
export type InterruptMode = "immediate" | "wait";

/** A bookmark on another entry; without a label it is removed. */
export type LabelEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  targetId: string;
  label?: string;
};

/** Answer of `get_last_assistant_text`. */
export type LastText = {
  text: string | null;
};

/** Answer of `cycle_thinking_level`. */
export type Level = {
  level: ThinkingLevel;
};

/** Answer of `get_available_thinking_levels`. */
export type Levels = {
  levels: ThinkingLevel[];
};

/** What can be limited. */
export type LimitName = "turns" | "tokens" | "outputTokens" | "costUsd" | "wallSeconds" | "toolSeconds" | "toolCallSeconds" | "processes" | "memoryMb" | "fileMb" | "diskMb" | "outputMb" | "repeats";

/** How far a limit is used up. */
export type LimitPhase = "soft" | "hard";

/** Sent only by sessions that have limits. */
export type LimitReachedEvent = {
  type: "limit_reached";
  limit: LimitName;
  used: Amount;
  max: Amount;
  phase: LimitPhase;
};

/** Which limit ended something. */
export type LimitRecord = {
  limit: LimitName;
  used: Amount;
  max: Amount;
  /** The call it ended; absent if it ended the work. */
  toolCallId?: string;
};

/** A limit and what was used of it. */
export type LimitUse = {
  name: LimitName;
  used: Amount;
  max: Amount;
};

/** Answer of `set_limits`. */
export type LimitUses = {
  limits: LimitUse[];
};

/** Bounds of the wire. */
export type Limits = {
  /** Of a line of input. */
  maxLineBytes: number;
  /** Of arrays and objects in a line of input. */
  maxDepth: number;
};

/** What files were before the calls of this session, newest first. */
export type ListCheckpointsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "list_checkpoints";
  limit?: number | null;
};

export type ListCheckpointsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "list_checkpoints";
  success: true;
  data: Checkpoints;
};

/** The sessions of this working directory, or of all. */
export type ListSessionsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "list_sessions";
  all?: boolean | null;
};

export type ListSessionsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "list_sessions";
  success: true;
  data: Sessions;
};

/** What a call has changed, and what can go back. */
export type ListedCheckpoint = {
  id: string;
  /** The entry of the answer that the call is part of. */
  entryId?: string;
  toolCallId?: string;
  /** The tool, or the command that put files back. */
  tool: string;
  timestamp: string;
  coverage: CheckpointCoverage;
  /** Why not everything is covered. */
  reason?: string;
  files: CheckpointFile[];
};

/** A session file without its messages. */
export type ListedSession = {
  path: string;
  id: string;
  /** Empty if the file does not say. */
  cwd: string;
  name?: string;
  parentSessionPath?: string;
  /** Unix milliseconds. */
  created: number;
  /** Unix milliseconds of the latest prompt or answer. */
  modified: number;
  messageCount: number;
  /** `(no messages)` if there is none. */
  firstMessage: string;
};

/** The model makes the same call with the same result again and again. Sent only by sessions that have limits. */
export type LoopSuspectedEvent = {
  type: "loop_suspected";
  toolName: string;
  count: number;
};

/** Begins a sign-in to an MCP server; the user opens the page of the answer. */
export type McpLoginCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "mcp_login";
  name: string;
};

export type McpLoginResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "mcp_login";
  success: true;
  data: McpSignIn;
};

/** Ends an MCP server and starts it again. */
export type McpReconnectCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "mcp_reconnect";
  name: string;
};

export type McpReconnectResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "mcp_reconnect";
  success: true;
  data: McpServerStates;
};

/** A server and what it offers, as far as that is known. */
export type McpServer = {
  name: string;
  /** `flag`, `host`, `project`, `user` or `extension`. */
  source: string;
  /** `disabled`, `idle`, `starting`, `ready`, `needs_auth`, `needs_input` or `failed`. */
  state: string;
  /** Why it does not run. */
  error?: string;
  /** What the user can run about it, if it is `needs_auth`. */
  hint?: string;
  /** `stdio`, `http` or `sse`. */
  transport: string;
  /** The file it is configured in. */
  path?: string;
  protocolVersion?: string;
  serverInfo?: McpServerInfo;
  /** `direct`, `deferred` or `hidden`; `auto` while its tools are not known. */
  exposure: string;
  tools: McpTool[];
  /** Slash commands that call its prompts, without the slash. */
  prompts: string[];
  hasResources: boolean;
  /** How many calls it has got in this session. */
  calls: number;
  /** How often it was started again in this session. */
  restarts: number;
};

/** Name and version of a server. */
export type McpServerInfo = {
  name: string;
  version: string;
};

/** Where a server stands. */
export type McpServerState = {
  name: string;
  /** `flag`, `host`, `project`, `user` or `extension`. */
  source: string;
  /** `disabled`, `idle`, `starting`, `ready`, `needs_auth`, `needs_input` or `failed`. */
  state: string;
  /** Why it does not run. */
  error?: string;
  /** What the user can run about it, if it is `needs_auth`. */
  hint?: string;
};

/** Answer of `set_mcp_servers`, `mcp_reconnect` and `set_mcp_enabled`. */
export type McpServerStates = {
  servers: McpServerState[];
};

/** Sent only to hosts that have used a command about MCP servers. */
export type McpServerUpdateEvent = {
  type: "mcp_server_update";
  name: string;
  state: string;
  error?: string;
};

/** Answer of `get_mcp_servers`. */
export type McpServers = {
  servers: McpServer[];
};

/** Answer of `mcp_login`. */
export type McpSignIn = {
  /** The page on which the user signs in. It leads back to pith, on this machine, within five minutes. */
  url: string;
};

/** A tool of a server. */
export type McpTool = {
  /** As the model calls it. */
  name: string;
  /** As the server calls it. */
  tool: string;
  /** Hints of the server, not facts. */
  annotations?: Record<string, unknown>;
};

/** Anything that can stand in a conversation. */
export type Message = UserMessage | AssistantMessage | ToolResultMessage | BashExecution | CustomMessage | CompactionSummary | BranchSummary | {
  role: string;
};

export type MessageEndEvent = {
  type: "message_end";
  message: Message;
};

/** A message of the conversation. */
export type MessageEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  message: Message;
};

export type MessageStartEvent = {
  type: "message_start";
  message: Message;
};

/** The growth of an answer. */
export type MessageUpdate = {
  /** Tokens counted so far. */
  usage: Usage;
  assistantMessageEvent: Growth;
  /** The whole message so far; only with stream updates `full`. */
  message?: Message;
};

/** Sent by [`crate::live`], which copies encoded bytes; this is how it is read. */
export type MessageUpdateEvent = MessageUpdate & {
  type: "message_update";
};

/** Answer of `get_messages`. */
export type Messages = {
  messages: Message[];
};

/** A model with everything needed to call and price it. Secrets are not in here. */
export type Model = {
  id: string;
  name: string;
  api: string;
  provider: string;
  baseUrl: string;
  reasoning: boolean;
  /** `text`, `image`. */
  input: string[];
  cost: ModelCost;
  contextWindow: number;
  maxTokens: number;
  /** Differences of this server from the standard of its API. */
  compat?: Record<string, unknown>;
  /** The provider's word for a level; `null` marks a level it does not have. */
  thinkingLevelMap?: Record<string, string | null>;
  /** Merged last into the request body. */
  samplingParams?: Record<string, unknown>;
  /** What the provider takes at most. */
  inputLimits?: InputLimits;
  /** How long the provider keeps a prompt prefix. */
  promptCache?: PromptCache;
};

/** Another model from here on. */
export type ModelChangeEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  provider: string;
  modelId: string;
};

/** US dollars per million tokens. */
export type ModelCost = {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  tiers?: PriceTier[];
};

/** Answer of `get_available_models`. */
export type Models = {
  models: Model[];
};

/** Continues from another entry of the session. */
export type NavigateTreeCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "navigate_tree";
  targetId: string;
  summarize?: boolean | null;
  customInstructions?: string | null;
  replaceInstructions?: boolean | null;
  label?: string | null;
  restoreFiles?: boolean | null;
};

export type NavigateTreeResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "navigate_tree";
  success: true;
  data: Navigated;
};

/** Answer of `navigate_tree`. */
export type Navigated = {
  cancelled: boolean;
  /** The new position, `null` for the one before all entries; absent when cancelled. */
  leafId?: string | null;
  /** The prompt that was taken back. */
  text?: string;
  /** The summary of the branch that was left. */
  summaryEntry?: Entry;
  /** The files that went back, if the host asked for that. */
  restored?: string[];
  /** Those that stay as they are. */
  skipped?: SkippedFile[];
};

export type NewSessionCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "new_session";
  parentSession?: string | null;
};

export type NewSessionResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "new_session";
  success: true;
  data: Cancelled;
};

/** What can be sent as `/name arguments` in a prompt: the union of what older and newer hosts read. */
export type OfferedCommand = {
  /** What follows the `/`. */
  name: string;
  description?: string | null;
  /** `extension`, `prompt` or `skill`. */
  source: string;
  /** `user`, `project` or `path`; absent for extensions. */
  location?: string | null;
  path: string;
  sourceInfo: Source;
};

/** What an answer means: this call; what the option's rule says, or else this very call again, in this session; what its rule says in this project; similar calls in this project, as its rule says; not this call; not this call, and the run ends. */
export type OptionId = "once" | "session" | "project" | "similar" | "deny" | "stop";

/** What kind of answer it is, in the words of the Agent Client Protocol. */
export type OptionKind = "allow_once" | "allow_always" | "reject_once" | "reject_always";

/** Holds before the next request to the model and the next tool call; `freeze` also stops running commands. */
export type PauseCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "pause";
  freeze?: boolean | null;
};

export type PauseResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "pause";
  success: true;
};

export type PausedEvent = {
  type: "paused";
  /** Whether running commands were stopped. */
  frozen: boolean;
};

/** Who decided. */
export type PermissionBy = "extension" | "user" | "rule" | "mode" | "timeout" | "unattended" | "abort";

/** Whether the call ran. */
export type PermissionDecision = "allow" | "deny";

/** A question whether a tool call may run, and its withdrawal, for hosts that accept them. */
export type PermissionFrame = {
  type: "permission_request";
  id: string;
  toolCallId: string;
  toolName: string;
  /** As they would be used. */
  arguments: Record<string, unknown>;
  cwd: string;
  /** Why it is asked, for people. */
  reason: string;
  /** The simple commands of a shell command. */
  parts: CommandPart[];
  /** What of a shell command is not understood. */
  opaque: string[];
  /** Files that redirections of a shell command write. */
  writes: string[];
  /** The profile of the sandbox it would run in; `off` without one. */
  sandbox: string;
  options: PermissionOption[];
  /** Milliseconds after which nobody is waited for any more. */
  timeout?: number;
} | {
  type: "permission_cancelled";
  id: string;
};

/** What becomes of calls that no rule is about: all run; reads and changes inside the workspace run, the rest is asked about; only reads run, the rest is asked about; only reads run, the rest is refused; none runs. */
export type PermissionMode = "allow" | "write" | "ask" | "read-only" | "deny";

/** An answer that is offered. */
export type PermissionOption = {
  id: OptionId;
  kind: OptionKind;
  /** What it would allow from then on. */
  rule?: string;
};

/** Who decided about a tool call, and how. */
export type PermissionRecord = {
  toolCallId: string;
  tool: string;
  decision: PermissionDecision;
  by: PermissionBy;
  /** How long an answer of the user holds. */
  scope?: PermissionScope;
  /** The rule that decided, or that the answer has made. */
  rule?: string;
  /** How long the call waited for an answer. */
  waitedMs?: number;
};

/** The answer to a `permission_request`. The message of a refusal is told to the model. */
export type PermissionResponse = {
  optionId: "once" | "session" | "project" | "similar" | "deny" | "stop";
  message?: string;
  type: "permission_response";
  /** That of the request. */
  id: string;
};

/** A rule, and who made it. */
export type PermissionRule = {
  rule: string;
  /** A file, a flag, or words. */
  from: string;
};

/** For what an answer holds. */
export type PermissionScope = "once" | "session" | "project";

/** Answer of `get_permissions` and `set_permissions`: what holds now. */
export type Permissions = {
  mode: PermissionMode;
  deny: PermissionRule[];
  /** What the user has answered; comes before `ask`. */
  granted: PermissionRule[];
  ask: PermissionRule[];
  allow: PermissionRule[];
  /** What silence means. */
  unattended: Unattended;
  /** How long a question waits, if the settings say so. */
  timeoutSeconds?: number;
};

/** Prices that apply above an input size. */
export type PriceTier = {
  inputTokensAbove: number;
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
};

/** Lifetimes of cached prompt prefixes, in seconds. */
export type PromptCache = {
  short?: number;
  long?: number;
};

/** Starts a run, or queues while one is active and `streamingBehavior` says how. */
export type PromptCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "prompt";
  message: string;
  images?: {
    type: "image";
    /** Base64 without a data-URL prefix. */
    data: string;
    mimeType: string;
  }[] | null;
  streamingBehavior?: StreamingBehavior | null;
  locale?: string | null;
  traceparent?: string | null;
};

/** Answer of `prompt`, `steer`, `follow_up`. */
export type PromptDisposition = {
  disposition: Disposition;
};

export type PromptResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "prompt";
  success: true;
  data: PromptDisposition;
};

/** How much of a queue one opportunity takes. */
export type QueueMode = "all" | "one-at-a-time";

export type QueueUpdateEvent = {
  type: "queue_update";
  steering: string[];
  followUp: string[];
};

/** Texts of the two queues. */
export type Queues = {
  steering: string[];
  followUp: string[];
};

/** Reads settings, models and resources again; answers what changed. */
export type ReloadCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "reload";
};

export type ReloadResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "reload";
  success: true;
  data: Reloaded;
};

/** Answer of `reload`. */
export type Reloaded = {
  changes: ResourceChange[];
};

/** What the model sees instead of a message. */
export type Replacement = {
  content: Content;
};

/** One difference between two readings of a project. */
export type ResourceChange = {
  /** `added`, `removed` or `changed`. */
  change: string;
  /** `settings`, `skill`, `prompt`, `context_file`, `system_prompt` or `append_system_prompt`. */
  resource: string;
  /** The skill, the template or the path of the context file. */
  name?: string;
  path?: string;
};

/** The one answer of a command. */
export type Response = HelloResponse | PromptResponse | SteerResponse | FollowUpResponse | AbortResponse | AbortAndPromptResponse | ClearQueueResponse | SetSteeringModeResponse | SetFollowUpModeResponse | SetInterruptModeResponse | SetStreamUpdatesResponse | GetStateResponse | GetMessagesResponse | GetLastAssistantTextResponse | GetSessionStatsResponse | GetCommandsResponse | GetDiagnosticsResponse | SetSandboxResponse | PauseResponse | ResumeResponse | SetLimitsResponse | GetPermissionsResponse | SetPermissionsResponse | SetApprovalModeResponse | ReloadResponse | SetModelResponse | CycleModelResponse | GetAvailableModelsResponse | SetThinkingLevelResponse | CycleThinkingLevelResponse | GetAvailableThinkingLevelsResponse | CompactResponse | SetAutoCompactionResponse | SetAutoRetryResponse | AbortRetryResponse | BashResponse | AbortBashResponse | NewSessionResponse | SwitchSessionResponse | ForkResponse | BranchResponse | CloneResponse | GetForkMessagesResponse | GetBranchMessagesResponse | GetEntriesResponse | GetAuditResponse | GetTreeResponse | ListSessionsResponse | NavigateTreeResponse | SetLabelResponse | SetSessionNameResponse | ExportHtmlResponse | ListCheckpointsResponse | RestoreCheckpointResponse | SetMcpServersResponse | GetMcpServersResponse | McpReconnectResponse | McpLoginResponse | SetMcpEnabledResponse | SetTodosResponse | SetHostToolsResponse | SetLocaleResponse | GetIntegrationsResponse | FailedResponse;

/** Puts files back to what they were before a call. Without `checkpointId` the id of the command names the checkpoint. */
export type RestoreCheckpointCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "restore_checkpoint";
  checkpointId?: string | null;
  paths?: string[] | null;
  dryRun?: boolean | null;
  force?: boolean | null;
};

export type RestoreCheckpointResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "restore_checkpoint";
  success: true;
  data: Restored;
};

/** Which files went back. */
export type RestoreRecord = {
  restored: string[];
  skipped: SkippedFile[];
  /** The checkpoint that takes it back. */
  undoId: string;
};

/** Answer of `restore_checkpoint`. */
export type Restored = {
  /** The files that went back, or would. */
  restored: string[];
  skipped: SkippedFile[];
  /** The checkpoint that takes this back; absent if nothing was changed. */
  undoId?: string;
};

/** Why the work failed. */
export type ResultError = {
  /** For people. */
  message: string;
  /** Absent if no model call failed: a refused prompt, an answer that does not fit its schema, an interrupt. */
  kind?: ErrorKind;
  /** The HTTP status of the provider. */
  status?: number;
};

/** What came of all prompts of one command. */
export type ResultRecord = {
  type: "result";
  /** The text of the last answer. */
  text: string;
  /** Why the last answer ended; absent if there is none. */
  stopReason?: StopReason;
  /** The answer as a value, if `--output-schema` was given and it fits. */
  output?: unknown;
  /** The first thing that failed; absent if nothing did. */
  error?: ResultError;
  /** Tokens of all answers, of tools that asked models and of compactions. */
  usage: Usage;
  /** US dollars, the same as `usage.cost.total`. */
  cost: number;
  /** Answers that did not fail. */
  turns: number;
  sessionId: string;
  /** Absent for a session in memory. */
  sessionFile?: string;
};

/** Goes on after `pause`. */
export type ResumeCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "resume";
};

export type ResumeResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "resume";
  success: true;
};

export type ResumedEvent = {
  type: "resumed";
};

export type RetryFallbackAppliedEvent = {
  type: "retry_fallback_applied";
  from: string;
  to: string;
  role: string;
};

export type RetryFallbackSucceededEvent = {
  type: "retry_fallback_succeeded";
  model: string;
  role: string;
};

/** What a sandbox refuses. */
export type SandboxDenial = "network" | "syscall" | "file" | "protected";

/** The sandbox has refused a tool call something. Sent before the end of the call. */
export type SandboxDeniedEvent = {
  type: "sandbox_denied";
  toolCallId: string;
  kind: SandboxDenial;
  target?: string;
  count: number;
  /** What a host was refused by, as its command was told: `blocked-by-allowlist`, `-denylist`, `-address`, `-sni`. */
  reason?: string;
};

/** How much a session may touch: what the user may; what the settings list; everything read and the session's directory written; everything read and nothing written. */
export type SandboxProfile = "off" | "custom" | "workspace-write" | "read-only";

/** A sandbox from the moment on. */
export type SandboxRecord = {
  profile: string;
  enforced: boolean;
};

/** What is enforced. Absent from `get_state` if no sandbox was asked for. With profile `off`, or if the sandbox cannot be had, there are only `profile`, `enforced` and perhaps `error`. */
export type SandboxState = {
  /** `off`, `read-only`, `workspace-write` or `custom`; `unknown` if the settings that name it cannot be read. */
  profile: string;
  /** Whether tools are confined; if not, `error` says why each call is refused, unless the profile is `off`. */
  enforced: boolean;
  /** `full`, `strict` or `best-effort`. */
  require?: string;
  /** The level of Landlock that this kernel offers. */
  landlockAbi?: number;
  seccomp?: boolean;
  /** Whether commands run in namespaces of their own. */
  namespaces?: boolean;
  /** Who holds commands to the policy: `kernel`. */
  filesystem?: string;
  /** Who holds file tools to the policy: `kernel`. */
  fileTools?: string;
  /** `kernel`: commands cannot change a protected path. `restored`: one that a command changes is put back at once and the command ends. */
  protectedPaths?: string;
  /** `on`, `domains` or `off`. */
  network?: string;
  /** `on` or `off`. */
  unixSockets?: string;
  writable?: string[];
  /** Gaps that stay open on this kernel. */
  missing?: string[];
  /** What runs with the rights of the user all the same. */
  unconfined?: string[];
  error?: string;
  /** In the answer of `set_sandbox`: the commands that still run as they were started. */
  staleCommands?: string[];
};

/** Which program it is. */
export type Server = {
  /** Always `pith`, whatever name it was started under. */
  name: string;
  version: string;
};

/** A service beside the model. */
export type Service = {
  name: string;
  state: ServiceState;
  hint?: string;
};

/** Whether a service can be used. */
export type ServiceState = "connected" | "unauthenticated" | "unavailable";

/** The first line of a session file. Not an entry: it has no place in the tree. */
export type SessionHeader = {
  type: "session";
  /** Of the format; 3 today. */
  version: number;
  id: string;
  /** ISO 8601, UTC. */
  timestamp: string;
  cwd: string;
  /** The file this session was forked from. */
  parentSession?: string;
};

export type SessionInfoChangedEvent = {
  type: "session_info_changed";
  /** Absent when the name was taken away. */
  name?: string;
};

/** The name of the session; the last one in the file counts, an empty one removes it. */
export type SessionInfoEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  name?: string;
};

/** Answer of `get_session_stats`. */
export type SessionStats = {
  sessionFile?: string;
  sessionId: string;
  userMessages: number;
  assistantMessages: number;
  toolCalls: number;
  toolResults: number;
  totalMessages: number;
  tokens: TokenTotals;
  cost: number;
  premiumRequests?: number;
  contextUsage?: ContextUsage;
};

/** Answer of `list_sessions`. */
export type Sessions = {
  /** Newest first. */
  sessions: ListedSession[];
};

/** Changes the mode by the name that editors have for it; the same as `set_permissions` with that mode. */
export type SetApprovalModeCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_approval_mode";
  mode: ApprovalMode;
};

export type SetApprovalModeResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_approval_mode";
  success: true;
  data: Permissions;
};

export type SetAutoCompactionCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_auto_compaction";
  enabled: boolean;
};

export type SetAutoCompactionResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_auto_compaction";
  success: true;
};

export type SetAutoRetryCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_auto_retry";
  enabled: boolean;
};

export type SetAutoRetryResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_auto_retry";
  success: true;
};

export type SetFollowUpModeCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_follow_up_mode";
  mode: QueueMode;
};

export type SetFollowUpModeResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_follow_up_mode";
  success: true;
};

export type SetHostToolsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_host_tools";
  tools: HostToolInput[];
};

export type SetHostToolsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_host_tools";
  success: true;
  data: HostToolNames;
};

export type SetInterruptModeCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_interrupt_mode";
  mode: InterruptMode;
};

export type SetInterruptModeResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_interrupt_mode";
  success: true;
};

/** Puts a bookmark on an entry, or removes it. */
export type SetLabelCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_label";
  entryId: string;
  label?: string | null;
};

export type SetLabelResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_label";
  success: true;
};

/** Sets limits by name, as in `limits` of the settings, for as long as pith runs; `null` takes one away. */
export type SetLimitsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_limits";
  limits: Record<string, unknown>;
};

export type SetLimitsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_limits";
  success: true;
  data: LimitUses;
};

export type SetLocaleCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_locale";
  locale: string;
};

export type SetLocaleResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_locale";
  success: true;
};

/** Switches an MCP server on or off, for this session. */
export type SetMcpEnabledCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_mcp_enabled";
  name: string;
  enabled: boolean;
};

export type SetMcpEnabledResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_mcp_enabled";
  success: true;
  data: McpServerStates;
};

/** Replaces the host's MCP servers, by name, as in `mcpServers` of a file; `wait` answers when they have started. */
export type SetMcpServersCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_mcp_servers";
  servers: Record<string, unknown>;
  wait?: boolean | null;
};

export type SetMcpServersResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_mcp_servers";
  success: true;
  data: McpServerStates;
};

export type SetModelCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_model";
  provider: string;
  modelId: string;
};

export type SetModelResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_model";
  success: true;
  data: Model;
};

/** Changes the mode, adds rules or takes rules back, for this session; grants of the project are taken back for good. */
export type SetPermissionsCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_permissions";
  mode?: PermissionMode | null;
  allow?: string[] | null;
  ask?: string[] | null;
  deny?: string[] | null;
  forget?: string[] | null;
};

export type SetPermissionsResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_permissions";
  success: true;
  data: Permissions;
};

/** Tightens the sandbox for what starts from now on; loosening needs `--sandbox-may-loosen`. `network` and `filesystem` are as in the settings. */
export type SetSandboxCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_sandbox";
  profile?: SandboxProfile | null;
  network?: Record<string, unknown> | null;
  filesystem?: Record<string, unknown> | null;
};

export type SetSandboxResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_sandbox";
  success: true;
  data: SandboxState;
};

export type SetSessionNameCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_session_name";
  name: string;
};

export type SetSessionNameResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_session_name";
  success: true;
};

export type SetSteeringModeCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_steering_mode";
  mode: QueueMode;
};

export type SetSteeringModeResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_steering_mode";
  success: true;
};

export type SetStreamUpdatesCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_stream_updates";
  mode: StreamUpdates;
};

export type SetStreamUpdatesResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_stream_updates";
  success: true;
};

export type SetThinkingLevelCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_thinking_level";
  level: ThinkingLevel;
};

export type SetThinkingLevelResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_thinking_level";
  success: true;
};

export type SetTodosCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "set_todos";
  phases: TodoPhaseInput[];
};

export type SetTodosResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "set_todos";
  success: true;
  data: TodoPhases;
};

/** A file that stays as it is. */
export type SkippedFile = {
  path: string;
  reason: string;
};

/** Where a command comes from. */
export type Source = {
  path: string;
  /** `auto` for conventional directories, `local` for named paths, else who brought it. */
  source: string;
  /** `user`, `project` or `temporary`. */
  scope: string;
  /** `top-level` or `package`. */
  origin: string;
  baseDir?: string;
};

/** Answer of `get_state`. */
export type State = {
  model: Model | null;
  thinkingLevel: ThinkingLevel;
  isStreaming: boolean;
  isCompacting: boolean;
  steeringMode: QueueMode;
  followUpMode: QueueMode;
  interruptMode: InterruptMode;
  sessionFile?: string;
  sessionId: string;
  sessionName?: string;
  autoCompactionEnabled: boolean;
  messageCount: number;
  pendingMessageCount: number;
  queuedMessageCount: number;
  todoPhases: TodoPhase[];
  /** Set after a failed write; the session goes on in memory. */
  sessionWriteError?: string;
  /** The MCP servers, once they are known and if there are any. */
  mcpServers?: McpServerState[];
  /** What holds tools back, if anything does. */
  sandbox?: SandboxState;
  /** The limits and what was used of them, if any is set. */
  limits?: LimitUse[];
  /** Present only while the session is paused. */
  isPaused?: boolean;
  /** Whether a tool call waits for an answer of the user; absent if none does. */
  isWaitingForPermission?: boolean;
  /** Large; only hosts that ask for it by their dialect get it. */
  systemPrompt?: string;
  /** As above. */
  dumpTools?: DumpedTool[];
};

/** Queues a message for the next pause of the run. */
export type SteerCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "steer";
  message: string;
  images?: {
    type: "image";
    /** Base64 without a data-URL prefix. */
    data: string;
    mimeType: string;
  }[] | null;
};

export type SteerResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "steer";
  success: true;
  data: PromptDisposition;
};

/** Why an answer ended. `pending` is the answer that has just begun, with stream updates `delta`. */
export type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted" | "pending";

/** Cumulative or linear-size `message_update` frames. */
export type StreamUpdates = "full" | "delta";

/** How a prompt joins a running agent. */
export type StreamingBehavior = "steer" | "followUp";

export type SummarizationRetryAttemptStartEvent = {
  type: "summarization_retry_attempt_start";
  source: string;
  reason?: CompactionReason;
};

export type SummarizationRetryFinishedEvent = {
  type: "summarization_retry_finished";
};

export type SummarizationRetryScheduledEvent = {
  type: "summarization_retry_scheduled";
  attempt: number;
  maxAttempts: number;
  delayMs: number;
  errorMessage: string;
};

export type SwitchSessionCommand = {
  /** Anything; comes back in the response. */
  id?: unknown;
  type: "switch_session";
  sessionPath: string;
};

export type SwitchSessionResponse = {
  /** That of the command, byte for byte. */
  id?: unknown;
  type: "response";
  command: "switch_session";
  success: true;
  data: Cancelled;
};

/** Plain text. */
export type TextBlock = {
  text: string;
  /** Opaque provider data that must go back with the text. */
  textSignature?: string;
};

/** What the model thought before it answered. */
export type ThinkingBlock = {
  thinking: string;
  thinkingSignature?: string;
  /** The text was withheld; the opaque payload is in the signature. */
  redacted?: boolean;
};

/** How much a model thinks before it answers. */
export type ThinkingLevel = "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** Another thinking level from here on. */
export type ThinkingLevelChangeEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  thinkingLevel: ThinkingLevel;
};

export type ThinkingLevelChangedEvent = {
  type: "thinking_level_changed";
  level: ThinkingLevel;
};

export type TodoAutoClearEvent = {
  type: "todo_auto_clear";
};

/** A named group of tasks. */
export type TodoPhase = {
  id: string;
  name: string;
  tasks: TodoTask[];
};

/** A phase as `set_todos` takes it. */
export type TodoPhaseInput = {
  /** Filled in by position if there is none. */
  id?: string | null;
  name: string;
  tasks?: TodoTaskInput[];
};

/** Answer of `set_todos`. */
export type TodoPhases = {
  todoPhases: TodoPhase[];
};

export type TodoReminderEvent = {
  type: "todo_reminder";
  todos: TodoTask[];
  attempt: number;
  maxAttempts: number;
};

/** How far a task is. */
export type TodoStatus = "pending" | "in_progress" | "completed" | "abandoned";

/** Something to be done. */
export type TodoTask = {
  id: string;
  content: string;
  status: TodoStatus;
  notes?: string;
  details?: string;
};

/** A task as `set_todos` takes it. */
export type TodoTaskInput = {
  /** Filled in by position if there is none. */
  id?: string | null;
  content: string;
  /** `pending` if there is none. */
  status?: TodoStatus | null;
  notes?: string | null;
  details?: string | null;
};

/** Sums over a session. */
export type TokenTotals = {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  total: number;
};

/** A request of the model to run a tool. */
export type ToolCall = {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  thoughtSignature?: string;
  namespace?: string;
  intent?: string;
  /** The argument text was not complete JSON; such a call is answered, never executed. */
  argumentsTruncated?: boolean;
};

export type ToolExecutionEndEvent = {
  type: "tool_execution_end";
  toolCallId: string;
  toolName: string;
  result: ToolResult;
  isError: boolean;
};

export type ToolExecutionStartEvent = {
  type: "tool_execution_start";
  toolCallId: string;
  toolName: string;
  args: Record<string, unknown>;
};

export type ToolExecutionUpdateEvent = {
  type: "tool_execution_update";
  toolCallId: string;
  toolName: string;
  args: Record<string, unknown>;
  partialResult: ToolResult;
};

/** Result, or the part of it known so far, of a tool call. */
export type ToolResult = {
  content: Block[];
  details?: unknown;
  terminate?: boolean;
  usage?: Usage;
};

/** What a tool gave back. */
export type ToolResultMessage = {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: Block[];
  details?: unknown;
  isError: boolean;
  timestamp: number;
  /** Model usage spent inside the tool. */
  usage?: Usage;
};

/** Answer of `get_tree`. */
export type Tree = {
  /** In file order, every branch. */
  nodes: FlatNode[];
  leafId: string | null;
} | {
  /** Roots first. */
  tree: TreeNode[];
  leafId: string | null;
};

/** An entry and what follows it. */
export type TreeNode = {
  entry: Entry;
  children: TreeNode[];
  /** Its bookmark. */
  label?: string;
  /** When the bookmark was put there. */
  labelTimestamp?: string;
};

/** A stream rule that has stopped an answer. */
export type TriggeredRule = {
  name: string;
  path: string;
  /** What the model is told. */
  content: string;
  /** Regular expressions; one match is enough. */
  condition: string[];
  /** What is watched: `text`, `thinking`, `tool`, `tool:<name>`. */
  scope: string[];
};

export type TurnEndEvent = {
  type: "turn_end";
  message: Message;
  toolResults: Message[];
};

export type TurnStartEvent = {
  type: "turn_start";
};

/** `extension_ui_request`: a question or a display change of an extension. */
export type UiRequest = ({
  method: "select";
  title: string;
  options: string[];
  timeout?: number;
} | {
  method: "confirm";
  title: string;
  message: string;
  timeout?: number;
} | {
  method: "input";
  title: string;
  placeholder?: string;
  timeout?: number;
} | {
  method: "editor";
  title: string;
  prefill?: string;
} | {
  method: "cancel";
  targetId: string;
} | {
  method: "notify";
  message: string;
  notifyType?: string;
} | {
  method: "setStatus";
  statusKey: string;
  statusText?: string;
} | {
  method: "setWidget";
  widgetKey: string;
  widgetLines?: string[];
  widgetPlacement?: string;
} | {
  method: "setTitle";
  title: string;
} | {
  method: "set_editor_text";
  text: string;
}) & {
  type: "extension_ui_request";
  id: string;
};

/** What silence means. */
export type Unattended = "deny" | "allow";

/** Tokens of one model answer. `input` excludes cached tokens, `output` includes reasoning. */
export type Usage = {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: Cost;
  /** Part of `cache_write` kept for an hour. */
  cacheWrite1h?: number;
  /** Part of `output` spent on reasoning. */
  reasoning?: number;
  /** The provider sent no usage; the numbers are ours. */
  estimated?: boolean;
};

/** Tokens spent beside the conversation; read, never written. */
export type UsageEntry = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  kind: string;
  provider: string;
  model: string;
  usage: Usage;
  note?: string;
};

/** What the person (or the host on their behalf) said. */
export type UserMessage = {
  role: "user";
  content: Content;
  attribution?: string;
  timestamp: number;
};

/** What becomes of a call, the strictest last. */
export type Verdict = "allow" | "ask" | "deny";

/** An entry of the audit, as the session file has it. */
export type custom2 = {
  id: string;
  /** The entry this one follows; `null` for a root. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
  /** Always `pith.audit`. */
  customType: string;
  data: AuditRecord;
};
