"""Everything that goes over the wire.

Generated from the schema by ``generate.py``; do not edit.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict, Union


class AbortAndPromptCommandImagesItem(TypedDict):
    type: Literal['image']
    data: str
    mimeType: str


class _AbortAndPromptCommand(TypedDict):
    type: Literal['abort_and_prompt']
    message: str


class AbortAndPromptCommand(_AbortAndPromptCommand, total=False):
    """Stops the run, then prompts."""

    id: Any
    images: Union[list[AbortAndPromptCommandImagesItem], None]


class _AbortAndPromptResponse(TypedDict):
    type: Literal['response']
    command: Literal['abort_and_prompt']
    success: Literal[True]
    data: PromptDisposition


class AbortAndPromptResponse(_AbortAndPromptResponse, total=False):
    id: Any


class _AbortBashCommand(TypedDict):
    type: Literal['abort_bash']


class AbortBashCommand(_AbortBashCommand, total=False):
    id: Any
    targetId: Any


class _AbortBashResponse(TypedDict):
    type: Literal['response']
    command: Literal['abort_bash']
    success: Literal[True]


class AbortBashResponse(_AbortBashResponse, total=False):
    id: Any


class _AbortCommand(TypedDict):
    type: Literal['abort']


class AbortCommand(_AbortCommand, total=False):
    """Stops the run; answered when it has stopped."""

    id: Any


class _AbortResponse(TypedDict):
    type: Literal['response']
    command: Literal['abort']
    success: Literal[True]


class AbortResponse(_AbortResponse, total=False):
    id: Any


class _AbortRetryCommand(TypedDict):
    type: Literal['abort_retry']


class AbortRetryCommand(_AbortRetryCommand, total=False):
    id: Any


class _AbortRetryResponse(TypedDict):
    type: Literal['response']
    command: Literal['abort_retry']
    success: Literal[True]


class AbortRetryResponse(_AbortRetryResponse, total=False):
    id: Any


class Accept(TypedDict):
    """What a host can live with beyond what its dialect says. Keys and words pith does not know are left out of the answer's `accepted`."""

    settledWhenHandled: Union[bool, None]
    streamUpdates: Union[StreamUpdates, None]
    permissionRequest: Union[bool, None]


class AgentEndEvent(TypedDict):
    type: Literal['agent_end']
    messages: list[Message]
    willRetry: bool


class _AgentSettledEvent(TypedDict):
    type: Literal['agent_settled']
    aborted: bool


class AgentSettledEvent(_AgentSettledEvent, total=False):
    limit: LimitUse


class AgentStartEvent(TypedDict):
    type: Literal['agent_start']


#: A number that is written without a fraction if it has none.
Amount: TypeAlias = "float"


#: The modes of a session as editors name them: a [`PermissionMode`] each, all but `deny`.
ApprovalMode: TypeAlias = "Literal['full', 'write', 'ask', 'read-only']"


class _AssistantMessage(TypedDict):
    role: Literal['assistant']
    content: list[Block]
    api: str
    provider: str
    model: str
    usage: Usage
    stopReason: StopReason
    timestamp: int


class AssistantMessage(_AssistantMessage, total=False):
    """One answer of a model."""

    errorMessage: str
    responseId: str
    responseModel: str
    rawStopReason: str
    error: Failure
    diagnostics: Any


class Audit(TypedDict):
    """Answer of `get_audit`."""

    entries: list[custom2]


class _AuditRecordPermission(TypedDict):
    toolCallId: str
    tool: str
    decision: PermissionDecision
    by: PermissionBy
    kind: Literal['permission']


class AuditRecordPermission(_AuditRecordPermission, total=False):
    """A tool call was allowed or refused."""

    scope: PermissionScope
    rule: str
    waitedMs: int


class AuditRecordSandbox(TypedDict):
    """The host has changed the sandbox."""

    profile: str
    enforced: bool
    kind: Literal['sandbox']


class _AuditRecordDenied(TypedDict):
    toolCallId: str
    tool: str
    denied: SandboxDenial
    kind: Literal['denied']


class AuditRecordDenied(_AuditRecordDenied, total=False):
    """The sandbox has refused a tool call something."""

    target: str
    reason: str


class _AuditRecordLimit(TypedDict):
    limit: LimitName
    used: Amount
    max: Amount
    kind: Literal['limit']


class AuditRecordLimit(_AuditRecordLimit, total=False):
    """A limit was reached."""

    toolCallId: str


class AuditRecordRestore(TypedDict):
    """Files were put back."""

    restored: list[str]
    skipped: list[SkippedFile]
    undoId: str
    kind: Literal['restore']


#: One thing that happened. A `kind` of a later version is kept as it is.
AuditRecord: TypeAlias = "Union[AuditRecordPermission, AuditRecordSandbox, AuditRecordDenied, AuditRecordLimit, AuditRecordRestore, dict[str, Any]]"


class _AutoRetryEndEvent(TypedDict):
    type: Literal['auto_retry_end']
    success: bool
    attempt: int


class AutoRetryEndEvent(_AutoRetryEndEvent, total=False):
    finalError: str


class AutoRetryStartEvent(TypedDict):
    type: Literal['auto_retry_start']
    attempt: int
    maxAttempts: int
    delayMs: int
    errorMessage: str


class _BashCommand(TypedDict):
    type: Literal['bash']
    command: str


class BashCommand(_BashCommand, total=False):
    id: Any
    excludeFromContext: Union[bool, None]


class _BashExecution(TypedDict):
    role: Literal['bashExecution']
    command: str
    output: str
    cancelled: bool
    truncated: bool
    timestamp: int


class BashExecution(_BashExecution, total=False):
    """A command the host ran with the `bash` command."""

    exitCode: int
    fullOutputPath: str
    excludeFromContext: bool


class _BashExecutionUpdateEvent(TypedDict):
    type: Literal['bash_execution_update']
    delta: str


class BashExecutionUpdateEvent(_BashExecutionUpdateEvent, total=False):
    id: Any


class _BashResponse(TypedDict):
    type: Literal['response']
    command: Literal['bash']
    success: Literal[True]
    data: BashResult


class BashResponse(_BashResponse, total=False):
    id: Any


class _BashResult(TypedDict):
    output: str
    cancelled: bool
    truncated: bool
    totalLines: int
    totalBytes: int
    outputLines: int
    outputBytes: int


class BashResult(_BashResult, total=False):
    """Answer of `bash`: the union of what pi and xcsh hosts read."""

    exitCode: int
    fullOutputPath: str


class _BlockText(TypedDict):
    text: str
    type: Literal['text']


class BlockText(_BlockText, total=False):
    """Plain text."""

    textSignature: str


class BlockImage(TypedDict):
    """An inline image: base64 without a data-URL prefix."""

    data: str
    mimeType: str
    type: Literal['image']


class _BlockThinking(TypedDict):
    thinking: str
    type: Literal['thinking']


class BlockThinking(_BlockThinking, total=False):
    """What the model thought before it answered."""

    thinkingSignature: str
    redacted: bool


class _BlockToolCall(TypedDict):
    id: str
    name: str
    arguments: dict[str, Any]
    type: Literal['toolCall']


class BlockToolCall(_BlockToolCall, total=False):
    """A request of the model to run a tool."""

    thoughtSignature: str
    namespace: str
    intent: str
    argumentsTruncated: bool


class BlockType(TypedDict):
    """Of another agent or a later version."""

    type: str


#: One piece of a message. Kinds we do not know round-trip untouched.
Block: TypeAlias = "Union[BlockText, BlockImage, BlockThinking, BlockToolCall, BlockType]"


class _BranchCommand(TypedDict):
    type: Literal['branch']
    entryId: str


class BranchCommand(_BranchCommand, total=False):
    id: Any
    restoreFiles: Union[bool, None]


class _BranchResponse(TypedDict):
    type: Literal['response']
    command: Literal['branch']
    success: Literal[True]
    data: Forked


class BranchResponse(_BranchResponse, total=False):
    id: Any


class BranchSummary(TypedDict):
    """Stands for a branch that was left."""

    role: Literal['branchSummary']
    summary: str
    fromId: Union[str, None]
    timestamp: int


class _BranchSummaryEntry(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    fromId: str
    summary: str


class BranchSummaryEntry(_BranchSummaryEntry, total=False):
    """What happened on a branch that was left."""

    details: Any
    usage: Usage
    fromHook: bool


class Cancelled(TypedDict):
    """Answer of session-replacing commands."""

    cancelled: bool


class Capabilities(TypedDict):
    """What can be sent and what can come."""

    commands: list[str]
    events: list[str]
    uiMethods: list[str]
    streamUpdates: list[StreamUpdates]
    limits: Limits


#: Whether a checkpoint covers all that its call may have changed.
CheckpointCoverage: TypeAlias = "Literal['full', 'partial']"


class CheckpointFile(TypedDict):
    """A file that a call has changed."""

    path: str
    change: FileChange
    bytes: int


class Checkpoints(TypedDict):
    """Answer of `list_checkpoints`."""

    checkpoints: list[ListedCheckpoint]


class _ClearQueueCommand(TypedDict):
    type: Literal['clear_queue']


class ClearQueueCommand(_ClearQueueCommand, total=False):
    """Empties both queues and returns what was in them."""

    id: Any


class _ClearQueueResponse(TypedDict):
    type: Literal['response']
    command: Literal['clear_queue']
    success: Literal[True]
    data: Queues


class ClearQueueResponse(_ClearQueueResponse, total=False):
    id: Any


class Client(TypedDict):
    """Who is speaking. Nothing depends on it."""

    name: Union[str, None]
    version: Union[str, None]


class _CloneCommand(TypedDict):
    type: Literal['clone']


class CloneCommand(_CloneCommand, total=False):
    id: Any


class _CloneResponse(TypedDict):
    type: Literal['response']
    command: Literal['clone']
    success: Literal[True]
    data: Cancelled


class CloneResponse(_CloneResponse, total=False):
    id: Any


class Collision(TypedDict):
    """Two resources of the same name; the first one found is used."""

    resourceType: str
    name: str
    winnerPath: str
    loserPath: str


#: What a host asks for.
Command: TypeAlias = "Union[HelloCommand, PromptCommand, SteerCommand, FollowUpCommand, AbortCommand, AbortAndPromptCommand, ClearQueueCommand, SetSteeringModeCommand, SetFollowUpModeCommand, SetInterruptModeCommand, SetStreamUpdatesCommand, GetStateCommand, GetMessagesCommand, GetLastAssistantTextCommand, GetSessionStatsCommand, GetCommandsCommand, GetDiagnosticsCommand, SetSandboxCommand, PauseCommand, ResumeCommand, SetLimitsCommand, GetPermissionsCommand, SetPermissionsCommand, SetApprovalModeCommand, ReloadCommand, SetModelCommand, CycleModelCommand, GetAvailableModelsCommand, SetThinkingLevelCommand, CycleThinkingLevelCommand, GetAvailableThinkingLevelsCommand, CompactCommand, SetAutoCompactionCommand, SetAutoRetryCommand, AbortRetryCommand, BashCommand, AbortBashCommand, NewSessionCommand, SwitchSessionCommand, ForkCommand, BranchCommand, CloneCommand, GetForkMessagesCommand, GetBranchMessagesCommand, GetEntriesCommand, GetAuditCommand, GetTreeCommand, ListSessionsCommand, NavigateTreeCommand, SetLabelCommand, SetSessionNameCommand, ExportHtmlCommand, ListCheckpointsCommand, RestoreCheckpointCommand, SetMcpServersCommand, GetMcpServersCommand, McpReconnectCommand, McpLoginCommand, SetMcpEnabledCommand, SetTodosCommand, SetHostToolsCommand, SetLocaleCommand, GetIntegrationsCommand]"


class _CommandPart(TypedDict):
    words: list[str]
    verdict: Verdict


class CommandPart(_CommandPart, total=False):
    """A simple command, and what is thought of it."""

    rule: str


class Commands(TypedDict):
    """Answer of `get_commands`."""

    commands: list[OfferedCommand]


class _CompactCommand(TypedDict):
    type: Literal['compact']


class CompactCommand(_CompactCommand, total=False):
    id: Any
    customInstructions: Union[str, None]


class _CompactResponse(TypedDict):
    type: Literal['response']
    command: Literal['compact']
    success: Literal[True]
    data: CompactionResult


class CompactResponse(_CompactResponse, total=False):
    id: Any


class _CompactionEndEvent(TypedDict):
    type: Literal['compaction_end']
    reason: CompactionReason
    result: Union[CompactionResult, None]
    aborted: bool
    willRetry: bool


class CompactionEndEvent(_CompactionEndEvent, total=False):
    errorMessage: str


class _CompactionEntry(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    summary: str
    firstKeptEntryId: str
    tokensBefore: int


class CompactionEntry(_CompactionEntry, total=False):
    """Everything before `firstKeptEntryId` is replaced by a summary."""

    details: Any
    usage: Usage
    fromHook: bool


#: Why a conversation is being shortened.
CompactionReason: TypeAlias = "Literal['manual', 'threshold', 'overflow']"


class _CompactionResult(TypedDict):
    summary: str
    firstKeptEntryId: str
    tokensBefore: int
    estimatedTokensAfter: int


class CompactionResult(_CompactionResult, total=False):
    """Answer of `compact`, and the `result` of the event that ends a compaction."""

    usage: Usage
    details: Any


class CompactionStartEvent(TypedDict):
    type: Literal['compaction_start']
    reason: CompactionReason


class CompactionSummary(TypedDict):
    """Stands for everything a compaction removed."""

    role: Literal['compactionSummary']
    summary: str
    tokensBefore: int
    timestamp: int


class _Connection(TypedDict):
    state: ConnectionState


class Connection(_Connection, total=False):
    """What is known of the model's provider without asking it."""

    provider: str


#: Whether a prompt to the model has a chance.
ConnectionState: TypeAlias = "Union[Literal['connected'], Literal['no_provider'], Literal['auth_error']]"


#: Content of user-like messages: a string in old files, blocks everywhere else.
Content: TypeAlias = "Union[str, list[Block]]"


class ContextEditEntry(TypedDict):
    """Changes how the model sees an earlier message; `null` hides it."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    targetId: str
    replacement: Union[Replacement, None]


class ContextUsage(TypedDict):
    """How full the model's window is; unknown right after a compaction."""

    tokens: Union[int, None]
    contextWindow: int
    percent: Union[float, None]


class _Cost(TypedDict):
    input: float
    output: float
    cacheRead: float
    cacheWrite: float
    total: float


class Cost(_Cost, total=False):
    """US dollars."""

    totalFromProvider: bool


class _CustomEntry(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    customType: str


class CustomEntry(_CustomEntry, total=False):
    """Data of an extension, out of the model's sight."""

    data: Any


class _CustomMessage(TypedDict):
    role: Literal['custom']
    customType: str
    content: Content
    display: bool
    timestamp: int


class CustomMessage(_CustomMessage, total=False):
    """A message placed by an extension."""

    details: Any


class _CustomMessageEntry(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    customType: str
    content: Content
    display: bool


class CustomMessageEntry(_CustomMessageEntry, total=False):
    """A message placed by an extension."""

    details: Any


class _CycleModelCommand(TypedDict):
    type: Literal['cycle_model']


class CycleModelCommand(_CycleModelCommand, total=False):
    id: Any


class _CycleModelResponse(TypedDict):
    type: Literal['response']
    command: Literal['cycle_model']
    success: Literal[True]
    data: Union[CycledModel, None]


class CycleModelResponse(_CycleModelResponse, total=False):
    id: Any


class _CycleThinkingLevelCommand(TypedDict):
    type: Literal['cycle_thinking_level']


class CycleThinkingLevelCommand(_CycleThinkingLevelCommand, total=False):
    id: Any


class _CycleThinkingLevelResponse(TypedDict):
    type: Literal['response']
    command: Literal['cycle_thinking_level']
    success: Literal[True]
    data: Union[Level, None]


class CycleThinkingLevelResponse(_CycleThinkingLevelResponse, total=False):
    id: Any


class CycledModel(TypedDict):
    """Answer of `cycle_model`."""

    model: Model
    thinkingLevel: ThinkingLevel
    isScoped: bool


class _DeniedRecord(TypedDict):
    toolCallId: str
    tool: str
    denied: SandboxDenial


class DeniedRecord(_DeniedRecord, total=False):
    """What a tool call did not get."""

    target: str
    reason: str


class _Diagnostic(TypedDict):
    type: DiagnosticKind
    message: str
    code: str


class Diagnostic(_Diagnostic, total=False):
    """One finding about a file, a directory or a setting."""

    path: str
    collision: Collision


#: How much a finding matters.
DiagnosticKind: TypeAlias = "Union[Literal['warning'], Literal['error'], Literal['collision']]"


class Diagnostics(TypedDict):
    """Answer of `get_diagnostics`."""

    diagnostics: list[Diagnostic]


#: What became of a prompt.
Disposition: TypeAlias = "Union[Literal['started'], Literal['queued'], Literal['handled']]"


class DumpedTool(TypedDict):
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: Any


class Entries(TypedDict):
    """Answer of `get_entries`."""

    entries: list[Entry]
    leafId: Union[str, None]


class EntryMessage(TypedDict):
    """A message of the conversation."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    message: Message
    type: Literal['message']


class EntryModelChange(TypedDict):
    """Another model from here on."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    provider: str
    modelId: str
    type: Literal['model_change']


class EntryThinkingLevelChange(TypedDict):
    """Another thinking level from here on."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    thinkingLevel: ThinkingLevel
    type: Literal['thinking_level_change']


class _EntrySessionInfo(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    type: Literal['session_info']


class EntrySessionInfo(_EntrySessionInfo, total=False):
    """The name of the session; the last one in the file counts, an empty one removes it."""

    name: str


class _EntryLabel(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    targetId: str
    type: Literal['label']


class EntryLabel(_EntryLabel, total=False):
    """A bookmark on another entry; without a label it is removed."""

    label: str


class _EntryCompaction(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    summary: str
    firstKeptEntryId: str
    tokensBefore: int
    type: Literal['compaction']


class EntryCompaction(_EntryCompaction, total=False):
    """Everything before `firstKeptEntryId` is replaced by a summary."""

    details: Any
    usage: Usage
    fromHook: bool


class _EntryBranchSummary(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    fromId: str
    summary: str
    type: Literal['branch_summary']


class EntryBranchSummary(_EntryBranchSummary, total=False):
    """What happened on a branch that was left."""

    details: Any
    usage: Usage
    fromHook: bool


class _EntryCustom(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    customType: str
    type: Literal['custom']


class EntryCustom(_EntryCustom, total=False):
    """Data of an extension, out of the model's sight."""

    data: Any


class _EntryCustomMessage(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    customType: str
    content: Content
    display: bool
    type: Literal['custom_message']


class EntryCustomMessage(_EntryCustomMessage, total=False):
    """A message placed by an extension."""

    details: Any


class EntryContextEdit(TypedDict):
    """Changes how the model sees an earlier message; `null` hides it."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    targetId: str
    replacement: Union[Replacement, None]
    type: Literal['context_edit']


class _EntryUsage(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    kind: str
    provider: str
    model: str
    usage: Usage
    type: Literal['usage']


class EntryUsage(_EntryUsage, total=False):
    """Tokens spent beside the conversation; read, never written."""

    note: str


class EntryType(TypedDict):
    """Of another agent or a later version."""

    type: str


#: Any other line. Types we do not know round-trip untouched.
Entry: TypeAlias = "Union[EntryMessage, EntryModelChange, EntryThinkingLevelChange, EntrySessionInfo, EntryLabel, EntryCompaction, EntryBranchSummary, EntryCustom, EntryCustomMessage, EntryContextEdit, EntryUsage, EntryType]"


class EntryAppendedEvent(TypedDict):
    type: Literal['entry_appended']
    entry: Entry


#: Stable names of failures. The text of a failure may change, its code does not; hosts ignore codes they do
#: not know.
ErrorCode: TypeAlias = "Union[Literal['parse_error'], Literal['unknown_command'], Literal['missing_field'], Literal['invalid_field'], Literal['busy'], Literal['compacting'], Literal['no_model'], Literal['model_not_found'], Literal['model_unusable'], Literal['aborted'], Literal['closing'], Literal['nothing_to_compact'], Literal['cancelled'], Literal['summary_failed'], Literal['session_not_found'], Literal['session_invalid'], Literal['session_in_use'], Literal['directory_missing'], Literal['entry_not_found'], Literal['checkpoint_not_found'], Literal['nothing_there'], Literal['io_error'], Literal['not_queueable'], Literal['host_tool_refused'], Literal['sandbox_refused'], Literal['limit_reached'], Literal['mcp_refused'], Literal['extension_failed'], Literal['shell_failed'], Literal['internal_error']]"


#: Classes of failure a caller treats differently.
ErrorKind: TypeAlias = "Union[Literal['auth', 'rate_limit', 'overloaded', 'overflow', 'quota', 'invalid_request', 'network', 'timeout', 'protocol'], Literal['limit']]"


#: What pith tells without being asked.
Event: TypeAlias = "Union[AgentStartEvent, AgentEndEvent, AgentSettledEvent, TurnStartEvent, TurnEndEvent, MessageStartEvent, MessageEndEvent, MessageUpdateEvent, ToolExecutionStartEvent, ToolExecutionUpdateEvent, ToolExecutionEndEvent, QueueUpdateEvent, CompactionStartEvent, CompactionEndEvent, AutoRetryStartEvent, AutoRetryEndEvent, ThinkingLevelChangedEvent, SessionInfoChangedEvent, EntryAppendedEvent, BashExecutionUpdateEvent, SummarizationRetryScheduledEvent, SummarizationRetryAttemptStartEvent, SummarizationRetryFinishedEvent, ExtensionErrorEvent, TodoReminderEvent, TodoAutoClearEvent, RetryFallbackAppliedEvent, RetryFallbackSucceededEvent, McpServerUpdateEvent, SandboxDeniedEvent, LimitReachedEvent, LoopSuspectedEvent, PausedEvent, ResumedEvent]"


class _ExportHtmlCommand(TypedDict):
    type: Literal['export_html']


class ExportHtmlCommand(_ExportHtmlCommand, total=False):
    id: Any
    outputPath: Union[str, None]


class _ExportHtmlResponse(TypedDict):
    type: Literal['response']
    command: Literal['export_html']
    success: Literal[True]
    data: Exported


class ExportHtmlResponse(_ExportHtmlResponse, total=False):
    id: Any


class Exported(TypedDict):
    """Answer of `export_html`."""

    path: str


class ExtensionErrorEvent(TypedDict):
    type: Literal['extension_error']
    extensionPath: str
    event: str
    error: str


class _ExtensionUiResponse(TypedDict):
    type: Literal['extension_ui_response']
    id: str


class ExtensionUiResponse(_ExtensionUiResponse, total=False):
    """The answer to a dialog: one of `value`, `confirmed` and `cancelled`."""

    value: str
    confirmed: bool
    cancelled: Literal[True]


class _FailedResponse(TypedDict):
    type: Literal['response']
    command: str
    success: Literal[False]
    error: str
    code: ErrorCode


class FailedResponse(_FailedResponse, total=False):
    id: Any
    requestId: Any


class _Failure(TypedDict):
    kind: ErrorKind


class Failure(_Failure, total=False):
    """A failed model call in structured form; retry and compaction act on the kind."""

    status: int
    retryAfterMs: int
    requestId: str
    shouldRetry: bool


#: What happened to a file.
FileChange: TypeAlias = "Literal['created', 'modified', 'deleted']"


class _FlatNode(TypedDict):
    id: str
    parentId: Union[str, None]
    entry: Entry


class FlatNode(_FlatNode, total=False):
    """An entry in a list."""

    label: str
    labelTimestamp: str


class FollowUpCommandImagesItem(TypedDict):
    type: Literal['image']
    data: str
    mimeType: str


class _FollowUpCommand(TypedDict):
    type: Literal['follow_up']
    message: str


class FollowUpCommand(_FollowUpCommand, total=False):
    """Queues a message for when the run would end."""

    id: Any
    images: Union[list[FollowUpCommandImagesItem], None]


class _FollowUpResponse(TypedDict):
    type: Literal['response']
    command: Literal['follow_up']
    success: Literal[True]
    data: PromptDisposition


class FollowUpResponse(_FollowUpResponse, total=False):
    id: Any


class _ForkCommand(TypedDict):
    type: Literal['fork']
    entryId: str


class ForkCommand(_ForkCommand, total=False):
    id: Any
    restoreFiles: Union[bool, None]


class ForkMessage(TypedDict):
    """A prompt that can be forked from."""

    entryId: str
    text: str


class ForkMessages(TypedDict):
    """Answer of `get_fork_messages` and `get_branch_messages`."""

    messages: list[ForkMessage]


class _ForkResponse(TypedDict):
    type: Literal['response']
    command: Literal['fork']
    success: Literal[True]
    data: Forked


class ForkResponse(_ForkResponse, total=False):
    id: Any


class _Forked(TypedDict):
    cancelled: bool


class Forked(_Forked, total=False):
    """Answer of `fork` and `branch`."""

    text: str
    restored: list[str]
    skipped: list[SkippedFile]


#: A line of stdin.
FromHost: TypeAlias = "Union[Command, ExtensionUiResponse, PermissionResponse, HostToolUpdate, HostToolResult]"


#: A line of stdout.
FromPith: TypeAlias = "Union[Response, Event, UiRequest, HostToolFrame, PermissionFrame, SessionHeader, ResultRecord]"


class _GetAuditCommand(TypedDict):
    type: Literal['get_audit']


class GetAuditCommand(_GetAuditCommand, total=False):
    """What was asked, allowed and refused: the entries of the audit, or those after one."""

    id: Any
    since: Union[str, None]


class _GetAuditResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_audit']
    success: Literal[True]
    data: Audit


class GetAuditResponse(_GetAuditResponse, total=False):
    id: Any


class _GetAvailableModelsCommand(TypedDict):
    type: Literal['get_available_models']


class GetAvailableModelsCommand(_GetAvailableModelsCommand, total=False):
    id: Any


class _GetAvailableModelsResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_available_models']
    success: Literal[True]
    data: Models


class GetAvailableModelsResponse(_GetAvailableModelsResponse, total=False):
    id: Any


class _GetAvailableThinkingLevelsCommand(TypedDict):
    type: Literal['get_available_thinking_levels']


class GetAvailableThinkingLevelsCommand(_GetAvailableThinkingLevelsCommand, total=False):
    id: Any


class _GetAvailableThinkingLevelsResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_available_thinking_levels']
    success: Literal[True]
    data: Levels


class GetAvailableThinkingLevelsResponse(_GetAvailableThinkingLevelsResponse, total=False):
    id: Any


class _GetBranchMessagesCommand(TypedDict):
    type: Literal['get_branch_messages']


class GetBranchMessagesCommand(_GetBranchMessagesCommand, total=False):
    id: Any


class _GetBranchMessagesResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_branch_messages']
    success: Literal[True]
    data: ForkMessages


class GetBranchMessagesResponse(_GetBranchMessagesResponse, total=False):
    id: Any


class _GetCommandsCommand(TypedDict):
    type: Literal['get_commands']


class GetCommandsCommand(_GetCommandsCommand, total=False):
    id: Any


class _GetCommandsResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_commands']
    success: Literal[True]
    data: Commands


class GetCommandsResponse(_GetCommandsResponse, total=False):
    id: Any


class _GetDiagnosticsCommand(TypedDict):
    type: Literal['get_diagnostics']


class GetDiagnosticsCommand(_GetDiagnosticsCommand, total=False):
    """What is wrong with settings, models and resources."""

    id: Any


class _GetDiagnosticsResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_diagnostics']
    success: Literal[True]
    data: Diagnostics


class GetDiagnosticsResponse(_GetDiagnosticsResponse, total=False):
    id: Any


class _GetEntriesCommand(TypedDict):
    type: Literal['get_entries']


class GetEntriesCommand(_GetEntriesCommand, total=False):
    id: Any
    since: Union[str, None]


class _GetEntriesResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_entries']
    success: Literal[True]
    data: Entries


class GetEntriesResponse(_GetEntriesResponse, total=False):
    id: Any


class _GetForkMessagesCommand(TypedDict):
    type: Literal['get_fork_messages']


class GetForkMessagesCommand(_GetForkMessagesCommand, total=False):
    id: Any


class _GetForkMessagesResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_fork_messages']
    success: Literal[True]
    data: ForkMessages


class GetForkMessagesResponse(_GetForkMessagesResponse, total=False):
    id: Any


class _GetIntegrationsCommand(TypedDict):
    type: Literal['get_integrations']


class GetIntegrationsCommand(_GetIntegrationsCommand, total=False):
    id: Any


class _GetIntegrationsResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_integrations']
    success: Literal[True]
    data: Integrations


class GetIntegrationsResponse(_GetIntegrationsResponse, total=False):
    id: Any


class _GetLastAssistantTextCommand(TypedDict):
    type: Literal['get_last_assistant_text']


class GetLastAssistantTextCommand(_GetLastAssistantTextCommand, total=False):
    id: Any


class _GetLastAssistantTextResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_last_assistant_text']
    success: Literal[True]
    data: LastText


class GetLastAssistantTextResponse(_GetLastAssistantTextResponse, total=False):
    id: Any


class _GetMcpServersCommand(TypedDict):
    type: Literal['get_mcp_servers']


class GetMcpServersCommand(_GetMcpServersCommand, total=False):
    """The MCP servers and their tools; `connect` starts those that do not run."""

    id: Any
    connect: Union[bool, None]


class _GetMcpServersResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_mcp_servers']
    success: Literal[True]
    data: McpServers


class GetMcpServersResponse(_GetMcpServersResponse, total=False):
    id: Any


class _GetMessagesCommand(TypedDict):
    type: Literal['get_messages']


class GetMessagesCommand(_GetMessagesCommand, total=False):
    id: Any


class _GetMessagesResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_messages']
    success: Literal[True]
    data: Messages


class GetMessagesResponse(_GetMessagesResponse, total=False):
    id: Any


class _GetPermissionsCommand(TypedDict):
    type: Literal['get_permissions']


class GetPermissionsCommand(_GetPermissionsCommand, total=False):
    """The rules about tool calls, and the mode for calls that no rule is about."""

    id: Any


class _GetPermissionsResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_permissions']
    success: Literal[True]
    data: Permissions


class GetPermissionsResponse(_GetPermissionsResponse, total=False):
    id: Any


class _GetSessionStatsCommand(TypedDict):
    type: Literal['get_session_stats']


class GetSessionStatsCommand(_GetSessionStatsCommand, total=False):
    id: Any


class _GetSessionStatsResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_session_stats']
    success: Literal[True]
    data: SessionStats


class GetSessionStatsResponse(_GetSessionStatsResponse, total=False):
    id: Any


class _GetStateCommand(TypedDict):
    type: Literal['get_state']


class GetStateCommand(_GetStateCommand, total=False):
    id: Any


class _GetStateResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_state']
    success: Literal[True]
    data: State


class GetStateResponse(_GetStateResponse, total=False):
    id: Any


class _GetTreeCommand(TypedDict):
    type: Literal['get_tree']


class GetTreeCommand(_GetTreeCommand, total=False):
    """All entries, nested by parent, or as one list with `flat`."""

    id: Any
    flat: Union[bool, None]


class _GetTreeResponse(TypedDict):
    type: Literal['response']
    command: Literal['get_tree']
    success: Literal[True]
    data: Tree


class GetTreeResponse(_GetTreeResponse, total=False):
    id: Any


class Greeting(TypedDict):
    """Answer of `hello`."""

    protocolVersion: int
    dialect: str
    server: Server
    capabilities: Capabilities
    accepted: list[str]


class _GrowthTextStart(TypedDict):
    contentIndex: int
    type: Literal['text_start']


class GrowthTextStart(_GrowthTextStart, total=False):
    partial: Message


class _GrowthTextDelta(TypedDict):
    contentIndex: int
    type: Literal['text_delta']
    delta: str


class GrowthTextDelta(_GrowthTextDelta, total=False):
    partial: Message


class _GrowthTextEnd(TypedDict):
    contentIndex: int
    type: Literal['text_end']
    content: str


class GrowthTextEnd(_GrowthTextEnd, total=False):
    partial: Message


class _GrowthThinkingStart(TypedDict):
    contentIndex: int
    type: Literal['thinking_start']


class GrowthThinkingStart(_GrowthThinkingStart, total=False):
    partial: Message


class _GrowthThinkingDelta(TypedDict):
    contentIndex: int
    type: Literal['thinking_delta']
    delta: str


class GrowthThinkingDelta(_GrowthThinkingDelta, total=False):
    partial: Message


class _GrowthThinkingEnd(TypedDict):
    contentIndex: int
    type: Literal['thinking_end']
    content: str


class GrowthThinkingEnd(_GrowthThinkingEnd, total=False):
    partial: Message


class _GrowthToolcallStart(TypedDict):
    contentIndex: int
    type: Literal['toolcall_start']
    id: str
    toolName: str


class GrowthToolcallStart(_GrowthToolcallStart, total=False):
    partial: Message


class _GrowthToolcallDelta(TypedDict):
    contentIndex: int
    type: Literal['toolcall_delta']
    delta: str


class GrowthToolcallDelta(_GrowthToolcallDelta, total=False):
    """A piece of the argument text."""

    partial: Message


class _GrowthToolcallEnd(TypedDict):
    contentIndex: int
    type: Literal['toolcall_end']
    toolCall: Block


class GrowthToolcallEnd(_GrowthToolcallEnd, total=False):
    partial: Message


#: One step in which an answer grows.
Growth: TypeAlias = "Union[GrowthTextStart, GrowthTextDelta, GrowthTextEnd, GrowthThinkingStart, GrowthThinkingDelta, GrowthThinkingEnd, GrowthToolcallStart, GrowthToolcallDelta, GrowthToolcallEnd]"


class _HelloCommand(TypedDict):
    type: Literal['hello']


class HelloCommand(_HelloCommand, total=False):
    """Says who the host is and what it accepts; answers what pith can do. Optional, at any time, the last one counts."""

    id: Any
    client: Union[Client, None]
    accept: Union[Accept, None]


class _HelloResponse(TypedDict):
    type: Literal['response']
    command: Literal['hello']
    success: Literal[True]
    data: Greeting


class HelloResponse(_HelloResponse, total=False):
    id: Any


class HostToolFrameHostToolCall(TypedDict):
    type: Literal['host_tool_call']
    id: str
    toolCallId: str
    toolName: str
    arguments: dict[str, Any]


class HostToolFrameHostToolCancel(TypedDict):
    type: Literal['host_tool_cancel']
    id: str
    targetId: str


#: A tool call handed to the host, and its withdrawal.
HostToolFrame: TypeAlias = "Union[HostToolFrameHostToolCall, HostToolFrameHostToolCancel]"


class _HostToolInput(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]


class HostToolInput(_HostToolInput, total=False):
    """The definition of a tool. One that was read has texts without space around them, and an object as schema."""

    label: Union[str, None]
    hidden: bool


class HostToolNames(TypedDict):
    """Answer of `set_host_tools`."""

    toolNames: list[str]


class _HostToolResultResult(TypedDict):
    content: list[Block]


class HostToolResultResult(_HostToolResultResult, total=False):
    details: Any


class _HostToolResult(TypedDict):
    result: HostToolResultResult
    type: Literal['host_tool_result']
    id: str


class HostToolResult(_HostToolResult, total=False):
    """The result of a tool of the host."""

    isError: bool


class _HostToolUpdatePartialResult(TypedDict):
    content: list[Block]


class HostToolUpdatePartialResult(_HostToolUpdatePartialResult, total=False):
    details: Any


class HostToolUpdate(TypedDict):
    """Progress of a tool of the host."""

    partialResult: HostToolUpdatePartialResult
    type: Literal['host_tool_update']
    id: str


class ImageBlock(TypedDict):
    """An inline image: base64 without a data-URL prefix."""

    data: str
    mimeType: str


class ImageLimits(TypedDict, total=False):
    """Limits on pictures."""

    maxPerMessage: int
    maxPerRequest: int
    resize: ImageResize


class ImageResize(TypedDict):
    """The largest picture sent as it is; bigger ones are scaled down to this."""

    maxWidth: int
    maxHeight: int
    maxBytes: int
    jpegQuality: int


class InputLimits(TypedDict, total=False):
    """Limits on what one request may carry."""

    maxRequestBytes: int
    images: ImageLimits


class Integrations(TypedDict):
    """Answer of `get_integrations`."""

    version: str
    model: Connection
    services: list[Service]


#: Whether steering disturbs a running tool batch.
InterruptMode: TypeAlias = "Literal['immediate', 'wait']"


class _LabelEntry(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    targetId: str


class LabelEntry(_LabelEntry, total=False):
    """A bookmark on another entry; without a label it is removed."""

    label: str


class LastText(TypedDict):
    """Answer of `get_last_assistant_text`."""

    text: Union[str, None]


class Level(TypedDict):
    """Answer of `cycle_thinking_level`."""

    level: ThinkingLevel


class Levels(TypedDict):
    """Answer of `get_available_thinking_levels`."""

    levels: list[ThinkingLevel]


#: What can be limited.
LimitName: TypeAlias = "Union[Literal['turns'], Literal['tokens'], Literal['outputTokens'], Literal['costUsd'], Literal['wallSeconds'], Literal['toolSeconds'], Literal['toolCallSeconds'], Literal['processes'], Literal['memoryMb'], Literal['fileMb'], Literal['diskMb'], Literal['outputMb'], Literal['repeats']]"


#: How far a limit is used up.
LimitPhase: TypeAlias = "Union[Literal['soft'], Literal['hard']]"


class LimitReachedEvent(TypedDict):
    """Sent only by sessions that have limits."""

    type: Literal['limit_reached']
    limit: LimitName
    used: Amount
    max: Amount
    phase: LimitPhase


class _LimitRecord(TypedDict):
    limit: LimitName
    used: Amount
    max: Amount


class LimitRecord(_LimitRecord, total=False):
    """Which limit ended something."""

    toolCallId: str


class LimitUse(TypedDict):
    """A limit and what was used of it."""

    name: LimitName
    used: Amount
    max: Amount


class LimitUses(TypedDict):
    """Answer of `set_limits`."""

    limits: list[LimitUse]


class Limits(TypedDict):
    """Bounds of the wire."""

    maxLineBytes: int
    maxDepth: int


class _ListCheckpointsCommand(TypedDict):
    type: Literal['list_checkpoints']


class ListCheckpointsCommand(_ListCheckpointsCommand, total=False):
    """What files were before the calls of this session, newest first."""

    id: Any
    limit: Union[int, None]


class _ListCheckpointsResponse(TypedDict):
    type: Literal['response']
    command: Literal['list_checkpoints']
    success: Literal[True]
    data: Checkpoints


class ListCheckpointsResponse(_ListCheckpointsResponse, total=False):
    id: Any


class _ListSessionsCommand(TypedDict):
    type: Literal['list_sessions']


class ListSessionsCommand(_ListSessionsCommand, total=False):
    """The sessions of this working directory, or of all."""

    id: Any
    all: Union[bool, None]


class _ListSessionsResponse(TypedDict):
    type: Literal['response']
    command: Literal['list_sessions']
    success: Literal[True]
    data: Sessions


class ListSessionsResponse(_ListSessionsResponse, total=False):
    id: Any


class _ListedCheckpoint(TypedDict):
    id: str
    tool: str
    timestamp: str
    coverage: CheckpointCoverage
    files: list[CheckpointFile]


class ListedCheckpoint(_ListedCheckpoint, total=False):
    """What a call has changed, and what can go back."""

    entryId: str
    toolCallId: str
    reason: str


class _ListedSession(TypedDict):
    path: str
    id: str
    cwd: str
    created: int
    modified: int
    messageCount: int
    firstMessage: str


class ListedSession(_ListedSession, total=False):
    """A session file without its messages."""

    name: str
    parentSessionPath: str


class LoopSuspectedEvent(TypedDict):
    """The model makes the same call with the same result again and again. Sent only by sessions that have limits."""

    type: Literal['loop_suspected']
    toolName: str
    count: int


class _McpLoginCommand(TypedDict):
    type: Literal['mcp_login']
    name: str


class McpLoginCommand(_McpLoginCommand, total=False):
    """Begins a sign-in to an MCP server; the user opens the page of the answer."""

    id: Any


class _McpLoginResponse(TypedDict):
    type: Literal['response']
    command: Literal['mcp_login']
    success: Literal[True]
    data: McpSignIn


class McpLoginResponse(_McpLoginResponse, total=False):
    id: Any


class _McpReconnectCommand(TypedDict):
    type: Literal['mcp_reconnect']
    name: str


class McpReconnectCommand(_McpReconnectCommand, total=False):
    """Ends an MCP server and starts it again."""

    id: Any


class _McpReconnectResponse(TypedDict):
    type: Literal['response']
    command: Literal['mcp_reconnect']
    success: Literal[True]
    data: McpServerStates


class McpReconnectResponse(_McpReconnectResponse, total=False):
    id: Any


class _McpServer(TypedDict):
    name: str
    source: str
    state: str
    transport: str
    exposure: str
    tools: list[McpTool]
    prompts: list[str]
    hasResources: bool
    calls: int
    restarts: int


class McpServer(_McpServer, total=False):
    """A server and what it offers, as far as that is known."""

    error: str
    hint: str
    path: str
    protocolVersion: str
    serverInfo: McpServerInfo


class McpServerInfo(TypedDict):
    """Name and version of a server."""

    name: str
    version: str


class _McpServerState(TypedDict):
    name: str
    source: str
    state: str


class McpServerState(_McpServerState, total=False):
    """Where a server stands."""

    error: str
    hint: str


class McpServerStates(TypedDict):
    """Answer of `set_mcp_servers`, `mcp_reconnect` and `set_mcp_enabled`."""

    servers: list[McpServerState]


class _McpServerUpdateEvent(TypedDict):
    type: Literal['mcp_server_update']
    name: str
    state: str


class McpServerUpdateEvent(_McpServerUpdateEvent, total=False):
    """Sent only to hosts that have used a command about MCP servers."""

    error: str


class McpServers(TypedDict):
    """Answer of `get_mcp_servers`."""

    servers: list[McpServer]


class McpSignIn(TypedDict):
    """Answer of `mcp_login`."""

    url: str


class _McpTool(TypedDict):
    name: str
    tool: str


class McpTool(_McpTool, total=False):
    """A tool of a server."""

    annotations: dict[str, Any]


class MessageRole(TypedDict):
    role: str


#: Anything that can stand in a conversation.
Message: TypeAlias = "Union[UserMessage, AssistantMessage, ToolResultMessage, BashExecution, CustomMessage, CompactionSummary, BranchSummary, MessageRole]"


class MessageEndEvent(TypedDict):
    type: Literal['message_end']
    message: Message


class MessageEntry(TypedDict):
    """A message of the conversation."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    message: Message


class MessageStartEvent(TypedDict):
    type: Literal['message_start']
    message: Message


class _MessageUpdate(TypedDict):
    usage: Usage
    assistantMessageEvent: Growth


class MessageUpdate(_MessageUpdate, total=False):
    """The growth of an answer."""

    message: Message


class _MessageUpdateEvent(TypedDict):
    usage: Usage
    assistantMessageEvent: Growth
    type: Literal['message_update']


class MessageUpdateEvent(_MessageUpdateEvent, total=False):
    """Sent by [`crate::live`], which copies encoded bytes; this is how it is read."""

    message: Message


class Messages(TypedDict):
    """Answer of `get_messages`."""

    messages: list[Message]


class _Model(TypedDict):
    id: str
    name: str
    api: str
    provider: str
    baseUrl: str
    reasoning: bool
    input: list[str]
    cost: ModelCost
    contextWindow: int
    maxTokens: int


class Model(_Model, total=False):
    """A model with everything needed to call and price it. Secrets are not in here."""

    compat: dict[str, Any]
    thinkingLevelMap: dict[str, Any]
    samplingParams: dict[str, Any]
    inputLimits: InputLimits
    promptCache: PromptCache


class ModelChangeEntry(TypedDict):
    """Another model from here on."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    provider: str
    modelId: str


class _ModelCost(TypedDict):
    input: float
    output: float
    cacheRead: float
    cacheWrite: float


class ModelCost(_ModelCost, total=False):
    """US dollars per million tokens."""

    tiers: list[PriceTier]


class Models(TypedDict):
    """Answer of `get_available_models`."""

    models: list[Model]


class _NavigateTreeCommand(TypedDict):
    type: Literal['navigate_tree']
    targetId: str


class NavigateTreeCommand(_NavigateTreeCommand, total=False):
    """Continues from another entry of the session."""

    id: Any
    summarize: Union[bool, None]
    customInstructions: Union[str, None]
    replaceInstructions: Union[bool, None]
    label: Union[str, None]
    restoreFiles: Union[bool, None]


class _NavigateTreeResponse(TypedDict):
    type: Literal['response']
    command: Literal['navigate_tree']
    success: Literal[True]
    data: Navigated


class NavigateTreeResponse(_NavigateTreeResponse, total=False):
    id: Any


class _Navigated(TypedDict):
    cancelled: bool


class Navigated(_Navigated, total=False):
    """Answer of `navigate_tree`."""

    leafId: Union[str, None]
    text: str
    summaryEntry: Entry
    restored: list[str]
    skipped: list[SkippedFile]


class _NewSessionCommand(TypedDict):
    type: Literal['new_session']


class NewSessionCommand(_NewSessionCommand, total=False):
    id: Any
    parentSession: Union[str, None]


class _NewSessionResponse(TypedDict):
    type: Literal['response']
    command: Literal['new_session']
    success: Literal[True]
    data: Cancelled


class NewSessionResponse(_NewSessionResponse, total=False):
    id: Any


class _OfferedCommand(TypedDict):
    name: str
    source: str
    path: str
    sourceInfo: Source


class OfferedCommand(_OfferedCommand, total=False):
    """What can be sent as `/name arguments` in a prompt: the union of what older and newer hosts read."""

    description: Union[str, None]
    location: Union[str, None]


#: What an answer means: this call; what the option's rule says, or else this very call again, in this session; what
#: its rule says in this project; similar calls in this project, as its rule says; not this call; not this call, and
#: the run ends.
OptionId: TypeAlias = "Literal['once', 'session', 'project', 'similar', 'deny', 'stop']"


#: What kind of answer it is, in the words of the Agent Client Protocol.
OptionKind: TypeAlias = "Literal['allow_once', 'allow_always', 'reject_once', 'reject_always']"


class _PauseCommand(TypedDict):
    type: Literal['pause']


class PauseCommand(_PauseCommand, total=False):
    """Holds before the next request to the model and the next tool call; `freeze` also stops running commands."""

    id: Any
    freeze: Union[bool, None]


class _PauseResponse(TypedDict):
    type: Literal['response']
    command: Literal['pause']
    success: Literal[True]


class PauseResponse(_PauseResponse, total=False):
    id: Any


class PausedEvent(TypedDict):
    type: Literal['paused']
    frozen: bool


#: Who decided.
PermissionBy: TypeAlias = "Union[Literal['extension'], Literal['user'], Literal['rule'], Literal['mode'], Literal['timeout'], Literal['unattended'], Literal['abort']]"


#: Whether the call ran.
PermissionDecision: TypeAlias = "Literal['allow', 'deny']"


class _PermissionFramePermissionRequest(TypedDict):
    type: Literal['permission_request']
    id: str
    toolCallId: str
    toolName: str
    arguments: dict[str, Any]
    cwd: str
    reason: str
    parts: list[CommandPart]
    opaque: list[str]
    writes: list[str]
    sandbox: str
    options: list[PermissionOption]


class PermissionFramePermissionRequest(_PermissionFramePermissionRequest, total=False):
    timeout: int


class PermissionFramePermissionCancelled(TypedDict):
    type: Literal['permission_cancelled']
    id: str


#: A question whether a tool call may run, and its withdrawal, for hosts that accept them.
PermissionFrame: TypeAlias = "Union[PermissionFramePermissionRequest, PermissionFramePermissionCancelled]"


#: What becomes of calls that no rule is about: all run; reads and changes inside the workspace run, the rest is
#: asked about; only reads run, the rest is asked about; only reads run, the rest is refused; none runs.
PermissionMode: TypeAlias = "Literal['allow', 'write', 'ask', 'read-only', 'deny']"


class _PermissionOption(TypedDict):
    id: OptionId
    kind: OptionKind


class PermissionOption(_PermissionOption, total=False):
    """An answer that is offered."""

    rule: str


class _PermissionRecord(TypedDict):
    toolCallId: str
    tool: str
    decision: PermissionDecision
    by: PermissionBy


class PermissionRecord(_PermissionRecord, total=False):
    """Who decided about a tool call, and how."""

    scope: PermissionScope
    rule: str
    waitedMs: int


class _PermissionResponse(TypedDict):
    optionId: Literal['once', 'session', 'project', 'similar', 'deny', 'stop']
    type: Literal['permission_response']
    id: str


class PermissionResponse(_PermissionResponse, total=False):
    """The answer to a `permission_request`. The message of a refusal is told to the model."""

    message: str


PermissionRule = TypedDict('PermissionRule', {'rule': 'str', 'from': 'str'}, total=False)


#: For what an answer holds.
PermissionScope: TypeAlias = "Literal['once', 'session', 'project']"


class _Permissions(TypedDict):
    mode: PermissionMode
    deny: list[PermissionRule]
    granted: list[PermissionRule]
    ask: list[PermissionRule]
    allow: list[PermissionRule]
    unattended: Unattended


class Permissions(_Permissions, total=False):
    """Answer of `get_permissions` and `set_permissions`: what holds now."""

    timeoutSeconds: int


class PriceTier(TypedDict):
    """Prices that apply above an input size."""

    inputTokensAbove: int
    input: float
    output: float
    cacheRead: float
    cacheWrite: float


class PromptCache(TypedDict, total=False):
    """Lifetimes of cached prompt prefixes, in seconds."""

    short: int
    long: int


class PromptCommandImagesItem(TypedDict):
    type: Literal['image']
    data: str
    mimeType: str


class _PromptCommand(TypedDict):
    type: Literal['prompt']
    message: str


class PromptCommand(_PromptCommand, total=False):
    """Starts a run, or queues while one is active and `streamingBehavior` says how."""

    id: Any
    images: Union[list[PromptCommandImagesItem], None]
    streamingBehavior: Union[StreamingBehavior, None]
    locale: Union[str, None]
    traceparent: Union[str, None]


class PromptDisposition(TypedDict):
    """Answer of `prompt`, `steer`, `follow_up`."""

    disposition: Disposition


class _PromptResponse(TypedDict):
    type: Literal['response']
    command: Literal['prompt']
    success: Literal[True]
    data: PromptDisposition


class PromptResponse(_PromptResponse, total=False):
    id: Any


#: How much of a queue one opportunity takes.
QueueMode: TypeAlias = "Literal['all', 'one-at-a-time']"


class QueueUpdateEvent(TypedDict):
    type: Literal['queue_update']
    steering: list[str]
    followUp: list[str]


class Queues(TypedDict):
    """Texts of the two queues."""

    steering: list[str]
    followUp: list[str]


class _ReloadCommand(TypedDict):
    type: Literal['reload']


class ReloadCommand(_ReloadCommand, total=False):
    """Reads settings, models and resources again; answers what changed."""

    id: Any


class _ReloadResponse(TypedDict):
    type: Literal['response']
    command: Literal['reload']
    success: Literal[True]
    data: Reloaded


class ReloadResponse(_ReloadResponse, total=False):
    id: Any


class Reloaded(TypedDict):
    """Answer of `reload`."""

    changes: list[ResourceChange]


class Replacement(TypedDict):
    """What the model sees instead of a message."""

    content: Content


class _ResourceChange(TypedDict):
    change: str
    resource: str


class ResourceChange(_ResourceChange, total=False):
    """One difference between two readings of a project."""

    name: str
    path: str


#: The one answer of a command.
Response: TypeAlias = "Union[HelloResponse, PromptResponse, SteerResponse, FollowUpResponse, AbortResponse, AbortAndPromptResponse, ClearQueueResponse, SetSteeringModeResponse, SetFollowUpModeResponse, SetInterruptModeResponse, SetStreamUpdatesResponse, GetStateResponse, GetMessagesResponse, GetLastAssistantTextResponse, GetSessionStatsResponse, GetCommandsResponse, GetDiagnosticsResponse, SetSandboxResponse, PauseResponse, ResumeResponse, SetLimitsResponse, GetPermissionsResponse, SetPermissionsResponse, SetApprovalModeResponse, ReloadResponse, SetModelResponse, CycleModelResponse, GetAvailableModelsResponse, SetThinkingLevelResponse, CycleThinkingLevelResponse, GetAvailableThinkingLevelsResponse, CompactResponse, SetAutoCompactionResponse, SetAutoRetryResponse, AbortRetryResponse, BashResponse, AbortBashResponse, NewSessionResponse, SwitchSessionResponse, ForkResponse, BranchResponse, CloneResponse, GetForkMessagesResponse, GetBranchMessagesResponse, GetEntriesResponse, GetAuditResponse, GetTreeResponse, ListSessionsResponse, NavigateTreeResponse, SetLabelResponse, SetSessionNameResponse, ExportHtmlResponse, ListCheckpointsResponse, RestoreCheckpointResponse, SetMcpServersResponse, GetMcpServersResponse, McpReconnectResponse, McpLoginResponse, SetMcpEnabledResponse, SetTodosResponse, SetHostToolsResponse, SetLocaleResponse, GetIntegrationsResponse, FailedResponse]"


class _RestoreCheckpointCommand(TypedDict):
    type: Literal['restore_checkpoint']


class RestoreCheckpointCommand(_RestoreCheckpointCommand, total=False):
    """Puts files back to what they were before a call. Without `checkpointId` the id of the command names the checkpoint."""

    id: Any
    checkpointId: Union[str, None]
    paths: Union[list[str], None]
    dryRun: Union[bool, None]
    force: Union[bool, None]


class _RestoreCheckpointResponse(TypedDict):
    type: Literal['response']
    command: Literal['restore_checkpoint']
    success: Literal[True]
    data: Restored


class RestoreCheckpointResponse(_RestoreCheckpointResponse, total=False):
    id: Any


class RestoreRecord(TypedDict):
    """Which files went back."""

    restored: list[str]
    skipped: list[SkippedFile]
    undoId: str


class _Restored(TypedDict):
    restored: list[str]
    skipped: list[SkippedFile]


class Restored(_Restored, total=False):
    """Answer of `restore_checkpoint`."""

    undoId: str


class _ResultError(TypedDict):
    message: str


class ResultError(_ResultError, total=False):
    """Why the work failed."""

    kind: ErrorKind
    status: int


class _ResultRecord(TypedDict):
    type: Literal['result']
    text: str
    usage: Usage
    cost: float
    turns: int
    sessionId: str


class ResultRecord(_ResultRecord, total=False):
    """What came of all prompts of one command."""

    stopReason: StopReason
    output: Any
    error: ResultError
    sessionFile: str


class _ResumeCommand(TypedDict):
    type: Literal['resume']


class ResumeCommand(_ResumeCommand, total=False):
    """Goes on after `pause`."""

    id: Any


class _ResumeResponse(TypedDict):
    type: Literal['response']
    command: Literal['resume']
    success: Literal[True]


class ResumeResponse(_ResumeResponse, total=False):
    id: Any


class ResumedEvent(TypedDict):
    type: Literal['resumed']


RetryFallbackAppliedEvent = TypedDict('RetryFallbackAppliedEvent', {'type': "Literal['retry_fallback_applied']", 'from': 'str', 'to': 'str', 'role': 'str'}, total=False)


class RetryFallbackSucceededEvent(TypedDict):
    type: Literal['retry_fallback_succeeded']
    model: str
    role: str


#: What a sandbox refuses.
SandboxDenial: TypeAlias = "Union[Literal['network', 'syscall'], Literal['file'], Literal['protected']]"


class _SandboxDeniedEvent(TypedDict):
    type: Literal['sandbox_denied']
    toolCallId: str
    kind: SandboxDenial
    count: int


class SandboxDeniedEvent(_SandboxDeniedEvent, total=False):
    """The sandbox has refused a tool call something. Sent before the end of the call."""

    target: str
    reason: str


#: How much a session may touch: what the user may; what the settings list; everything read and
#: the session's directory written; everything read and nothing written.
SandboxProfile: TypeAlias = "Literal['off', 'custom', 'workspace-write', 'read-only']"


class SandboxRecord(TypedDict):
    """A sandbox from the moment on."""

    profile: str
    enforced: bool


class _SandboxState(TypedDict):
    profile: str
    enforced: bool


class SandboxState(_SandboxState, total=False):
    """What is enforced. Absent from `get_state` if no sandbox was asked for. With profile `off`, or if the sandbox cannot be had, there are only `profile`, `enforced` and perhaps `error`."""

    require: str
    landlockAbi: int
    seccomp: bool
    namespaces: bool
    filesystem: str
    fileTools: str
    protectedPaths: str
    network: str
    unixSockets: str
    writable: list[str]
    missing: list[str]
    unconfined: list[str]
    error: str
    staleCommands: list[str]


class Server(TypedDict):
    """Which program it is."""

    name: str
    version: str


class _Service(TypedDict):
    name: str
    state: ServiceState


class Service(_Service, total=False):
    """A service beside the model."""

    hint: str


#: Whether a service can be used.
ServiceState: TypeAlias = "Literal['connected', 'unauthenticated', 'unavailable']"


class _SessionHeader(TypedDict):
    type: Literal['session']
    version: int
    id: str
    timestamp: str
    cwd: str


class SessionHeader(_SessionHeader, total=False):
    """The first line of a session file. Not an entry: it has no place in the tree."""

    parentSession: str


class _SessionInfoChangedEvent(TypedDict):
    type: Literal['session_info_changed']


class SessionInfoChangedEvent(_SessionInfoChangedEvent, total=False):
    name: str


class _SessionInfoEntry(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str


class SessionInfoEntry(_SessionInfoEntry, total=False):
    """The name of the session; the last one in the file counts, an empty one removes it."""

    name: str


class _SessionStats(TypedDict):
    sessionId: str
    userMessages: int
    assistantMessages: int
    toolCalls: int
    toolResults: int
    totalMessages: int
    tokens: TokenTotals
    cost: float


class SessionStats(_SessionStats, total=False):
    """Answer of `get_session_stats`."""

    sessionFile: str
    premiumRequests: int
    contextUsage: ContextUsage


class Sessions(TypedDict):
    """Answer of `list_sessions`."""

    sessions: list[ListedSession]


class _SetApprovalModeCommand(TypedDict):
    type: Literal['set_approval_mode']
    mode: ApprovalMode


class SetApprovalModeCommand(_SetApprovalModeCommand, total=False):
    """Changes the mode by the name that editors have for it; the same as `set_permissions` with that mode."""

    id: Any


class _SetApprovalModeResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_approval_mode']
    success: Literal[True]
    data: Permissions


class SetApprovalModeResponse(_SetApprovalModeResponse, total=False):
    id: Any


class _SetAutoCompactionCommand(TypedDict):
    type: Literal['set_auto_compaction']
    enabled: bool


class SetAutoCompactionCommand(_SetAutoCompactionCommand, total=False):
    id: Any


class _SetAutoCompactionResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_auto_compaction']
    success: Literal[True]


class SetAutoCompactionResponse(_SetAutoCompactionResponse, total=False):
    id: Any


class _SetAutoRetryCommand(TypedDict):
    type: Literal['set_auto_retry']
    enabled: bool


class SetAutoRetryCommand(_SetAutoRetryCommand, total=False):
    id: Any


class _SetAutoRetryResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_auto_retry']
    success: Literal[True]


class SetAutoRetryResponse(_SetAutoRetryResponse, total=False):
    id: Any


class _SetFollowUpModeCommand(TypedDict):
    type: Literal['set_follow_up_mode']
    mode: QueueMode


class SetFollowUpModeCommand(_SetFollowUpModeCommand, total=False):
    id: Any


class _SetFollowUpModeResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_follow_up_mode']
    success: Literal[True]


class SetFollowUpModeResponse(_SetFollowUpModeResponse, total=False):
    id: Any


class _SetHostToolsCommand(TypedDict):
    type: Literal['set_host_tools']
    tools: list[HostToolInput]


class SetHostToolsCommand(_SetHostToolsCommand, total=False):
    id: Any


class _SetHostToolsResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_host_tools']
    success: Literal[True]
    data: HostToolNames


class SetHostToolsResponse(_SetHostToolsResponse, total=False):
    id: Any


class _SetInterruptModeCommand(TypedDict):
    type: Literal['set_interrupt_mode']
    mode: InterruptMode


class SetInterruptModeCommand(_SetInterruptModeCommand, total=False):
    id: Any


class _SetInterruptModeResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_interrupt_mode']
    success: Literal[True]


class SetInterruptModeResponse(_SetInterruptModeResponse, total=False):
    id: Any


class _SetLabelCommand(TypedDict):
    type: Literal['set_label']
    entryId: str


class SetLabelCommand(_SetLabelCommand, total=False):
    """Puts a bookmark on an entry, or removes it."""

    id: Any
    label: Union[str, None]


class _SetLabelResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_label']
    success: Literal[True]


class SetLabelResponse(_SetLabelResponse, total=False):
    id: Any


class _SetLimitsCommand(TypedDict):
    type: Literal['set_limits']
    limits: dict[str, Any]


class SetLimitsCommand(_SetLimitsCommand, total=False):
    """Sets limits by name, as in `limits` of the settings, for as long as pith runs; `null` takes one away."""

    id: Any


class _SetLimitsResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_limits']
    success: Literal[True]
    data: LimitUses


class SetLimitsResponse(_SetLimitsResponse, total=False):
    id: Any


class _SetLocaleCommand(TypedDict):
    type: Literal['set_locale']
    locale: str


class SetLocaleCommand(_SetLocaleCommand, total=False):
    id: Any


class _SetLocaleResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_locale']
    success: Literal[True]


class SetLocaleResponse(_SetLocaleResponse, total=False):
    id: Any


class _SetMcpEnabledCommand(TypedDict):
    type: Literal['set_mcp_enabled']
    name: str
    enabled: bool


class SetMcpEnabledCommand(_SetMcpEnabledCommand, total=False):
    """Switches an MCP server on or off, for this session."""

    id: Any


class _SetMcpEnabledResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_mcp_enabled']
    success: Literal[True]
    data: McpServerStates


class SetMcpEnabledResponse(_SetMcpEnabledResponse, total=False):
    id: Any


class _SetMcpServersCommand(TypedDict):
    type: Literal['set_mcp_servers']
    servers: dict[str, Any]


class SetMcpServersCommand(_SetMcpServersCommand, total=False):
    """Replaces the host's MCP servers, by name, as in `mcpServers` of a file; `wait` answers when they have started."""

    id: Any
    wait: Union[bool, None]


class _SetMcpServersResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_mcp_servers']
    success: Literal[True]
    data: McpServerStates


class SetMcpServersResponse(_SetMcpServersResponse, total=False):
    id: Any


class _SetModelCommand(TypedDict):
    type: Literal['set_model']
    provider: str
    modelId: str


class SetModelCommand(_SetModelCommand, total=False):
    id: Any


class _SetModelResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_model']
    success: Literal[True]
    data: Model


class SetModelResponse(_SetModelResponse, total=False):
    id: Any


class _SetPermissionsCommand(TypedDict):
    type: Literal['set_permissions']


class SetPermissionsCommand(_SetPermissionsCommand, total=False):
    """Changes the mode, adds rules or takes rules back, for this session; grants of the project are taken back for good."""

    id: Any
    mode: Union[PermissionMode, None]
    allow: Union[list[str], None]
    ask: Union[list[str], None]
    deny: Union[list[str], None]
    forget: Union[list[str], None]


class _SetPermissionsResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_permissions']
    success: Literal[True]
    data: Permissions


class SetPermissionsResponse(_SetPermissionsResponse, total=False):
    id: Any


class _SetSandboxCommand(TypedDict):
    type: Literal['set_sandbox']


class SetSandboxCommand(_SetSandboxCommand, total=False):
    """Tightens the sandbox for what starts from now on; loosening needs `--sandbox-may-loosen`. `network` and `filesystem` are as in the settings."""

    id: Any
    profile: Union[SandboxProfile, None]
    network: Union[dict[str, Any], None]
    filesystem: Union[dict[str, Any], None]


class _SetSandboxResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_sandbox']
    success: Literal[True]
    data: SandboxState


class SetSandboxResponse(_SetSandboxResponse, total=False):
    id: Any


class _SetSessionNameCommand(TypedDict):
    type: Literal['set_session_name']
    name: str


class SetSessionNameCommand(_SetSessionNameCommand, total=False):
    id: Any


class _SetSessionNameResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_session_name']
    success: Literal[True]


class SetSessionNameResponse(_SetSessionNameResponse, total=False):
    id: Any


class _SetSteeringModeCommand(TypedDict):
    type: Literal['set_steering_mode']
    mode: QueueMode


class SetSteeringModeCommand(_SetSteeringModeCommand, total=False):
    id: Any


class _SetSteeringModeResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_steering_mode']
    success: Literal[True]


class SetSteeringModeResponse(_SetSteeringModeResponse, total=False):
    id: Any


class _SetStreamUpdatesCommand(TypedDict):
    type: Literal['set_stream_updates']
    mode: StreamUpdates


class SetStreamUpdatesCommand(_SetStreamUpdatesCommand, total=False):
    id: Any


class _SetStreamUpdatesResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_stream_updates']
    success: Literal[True]


class SetStreamUpdatesResponse(_SetStreamUpdatesResponse, total=False):
    id: Any


class _SetThinkingLevelCommand(TypedDict):
    type: Literal['set_thinking_level']
    level: ThinkingLevel


class SetThinkingLevelCommand(_SetThinkingLevelCommand, total=False):
    id: Any


class _SetThinkingLevelResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_thinking_level']
    success: Literal[True]


class SetThinkingLevelResponse(_SetThinkingLevelResponse, total=False):
    id: Any


class _SetTodosCommand(TypedDict):
    type: Literal['set_todos']
    phases: list[TodoPhaseInput]


class SetTodosCommand(_SetTodosCommand, total=False):
    id: Any


class _SetTodosResponse(TypedDict):
    type: Literal['response']
    command: Literal['set_todos']
    success: Literal[True]
    data: TodoPhases


class SetTodosResponse(_SetTodosResponse, total=False):
    id: Any


class SkippedFile(TypedDict):
    """A file that stays as it is."""

    path: str
    reason: str


class _Source(TypedDict):
    path: str
    source: str
    scope: str
    origin: str


class Source(_Source, total=False):
    """Where a command comes from."""

    baseDir: str


class _State(TypedDict):
    model: Union[Model, None]
    thinkingLevel: ThinkingLevel
    isStreaming: bool
    isCompacting: bool
    steeringMode: QueueMode
    followUpMode: QueueMode
    interruptMode: InterruptMode
    sessionId: str
    autoCompactionEnabled: bool
    messageCount: int
    pendingMessageCount: int
    queuedMessageCount: int
    todoPhases: list[TodoPhase]


class State(_State, total=False):
    """Answer of `get_state`."""

    sessionFile: str
    sessionName: str
    sessionWriteError: str
    mcpServers: list[McpServerState]
    sandbox: SandboxState
    limits: list[LimitUse]
    isPaused: bool
    isWaitingForPermission: bool
    systemPrompt: str
    dumpTools: list[DumpedTool]


class SteerCommandImagesItem(TypedDict):
    type: Literal['image']
    data: str
    mimeType: str


class _SteerCommand(TypedDict):
    type: Literal['steer']
    message: str


class SteerCommand(_SteerCommand, total=False):
    """Queues a message for the next pause of the run."""

    id: Any
    images: Union[list[SteerCommandImagesItem], None]


class _SteerResponse(TypedDict):
    type: Literal['response']
    command: Literal['steer']
    success: Literal[True]
    data: PromptDisposition


class SteerResponse(_SteerResponse, total=False):
    id: Any


#: Why an answer ended. `pending` is the answer that has just begun, with stream updates `delta`.
StopReason: TypeAlias = "Literal['stop', 'length', 'toolUse', 'error', 'aborted', 'pending']"


#: Cumulative or linear-size `message_update` frames.
StreamUpdates: TypeAlias = "Literal['full', 'delta']"


#: How a prompt joins a running agent.
StreamingBehavior: TypeAlias = "Literal['steer', 'followUp']"


class _SummarizationRetryAttemptStartEvent(TypedDict):
    type: Literal['summarization_retry_attempt_start']
    source: str


class SummarizationRetryAttemptStartEvent(_SummarizationRetryAttemptStartEvent, total=False):
    reason: CompactionReason


class SummarizationRetryFinishedEvent(TypedDict):
    type: Literal['summarization_retry_finished']


class SummarizationRetryScheduledEvent(TypedDict):
    type: Literal['summarization_retry_scheduled']
    attempt: int
    maxAttempts: int
    delayMs: int
    errorMessage: str


class _SwitchSessionCommand(TypedDict):
    type: Literal['switch_session']
    sessionPath: str


class SwitchSessionCommand(_SwitchSessionCommand, total=False):
    id: Any


class _SwitchSessionResponse(TypedDict):
    type: Literal['response']
    command: Literal['switch_session']
    success: Literal[True]
    data: Cancelled


class SwitchSessionResponse(_SwitchSessionResponse, total=False):
    id: Any


class _TextBlock(TypedDict):
    text: str


class TextBlock(_TextBlock, total=False):
    """Plain text."""

    textSignature: str


class _ThinkingBlock(TypedDict):
    thinking: str


class ThinkingBlock(_ThinkingBlock, total=False):
    """What the model thought before it answered."""

    thinkingSignature: str
    redacted: bool


#: How much a model thinks before it answers.
ThinkingLevel: TypeAlias = "Literal['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']"


class ThinkingLevelChangeEntry(TypedDict):
    """Another thinking level from here on."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    thinkingLevel: ThinkingLevel


class ThinkingLevelChangedEvent(TypedDict):
    type: Literal['thinking_level_changed']
    level: ThinkingLevel


class TodoAutoClearEvent(TypedDict):
    type: Literal['todo_auto_clear']


class TodoPhase(TypedDict):
    """A named group of tasks."""

    id: str
    name: str
    tasks: list[TodoTask]


class _TodoPhaseInput(TypedDict):
    name: str


class TodoPhaseInput(_TodoPhaseInput, total=False):
    """A phase as `set_todos` takes it."""

    id: Union[str, None]
    tasks: list[TodoTaskInput]


class TodoPhases(TypedDict):
    """Answer of `set_todos`."""

    todoPhases: list[TodoPhase]


class TodoReminderEvent(TypedDict):
    type: Literal['todo_reminder']
    todos: list[TodoTask]
    attempt: int
    maxAttempts: int


#: How far a task is.
TodoStatus: TypeAlias = "Literal['pending', 'in_progress', 'completed', 'abandoned']"


class _TodoTask(TypedDict):
    id: str
    content: str
    status: TodoStatus


class TodoTask(_TodoTask, total=False):
    """Something to be done."""

    notes: str
    details: str


class _TodoTaskInput(TypedDict):
    content: str


class TodoTaskInput(_TodoTaskInput, total=False):
    """A task as `set_todos` takes it."""

    id: Union[str, None]
    status: Union[TodoStatus, None]
    notes: Union[str, None]
    details: Union[str, None]


class TokenTotals(TypedDict):
    """Sums over a session."""

    input: int
    output: int
    cacheRead: int
    cacheWrite: int
    total: int


class _ToolCall(TypedDict):
    id: str
    name: str
    arguments: dict[str, Any]


class ToolCall(_ToolCall, total=False):
    """A request of the model to run a tool."""

    thoughtSignature: str
    namespace: str
    intent: str
    argumentsTruncated: bool


class ToolExecutionEndEvent(TypedDict):
    type: Literal['tool_execution_end']
    toolCallId: str
    toolName: str
    result: ToolResult
    isError: bool


class ToolExecutionStartEvent(TypedDict):
    type: Literal['tool_execution_start']
    toolCallId: str
    toolName: str
    args: dict[str, Any]


class ToolExecutionUpdateEvent(TypedDict):
    type: Literal['tool_execution_update']
    toolCallId: str
    toolName: str
    args: dict[str, Any]
    partialResult: ToolResult


class _ToolResult(TypedDict):
    content: list[Block]


class ToolResult(_ToolResult, total=False):
    """Result, or the part of it known so far, of a tool call."""

    details: Any
    terminate: bool
    usage: Usage


class _ToolResultMessage(TypedDict):
    role: Literal['toolResult']
    toolCallId: str
    toolName: str
    content: list[Block]
    isError: bool
    timestamp: int


class ToolResultMessage(_ToolResultMessage, total=False):
    """What a tool gave back."""

    details: Any
    usage: Usage


class TreeNodes(TypedDict):
    """With `flat`."""

    nodes: list[FlatNode]
    leafId: Union[str, None]


class TreeTree(TypedDict):
    tree: list[TreeNode]
    leafId: Union[str, None]


#: Answer of `get_tree`.
Tree: TypeAlias = "Union[TreeNodes, TreeTree]"


class _TreeNode(TypedDict):
    entry: Entry
    children: list[TreeNode]


class TreeNode(_TreeNode, total=False):
    """An entry and what follows it."""

    label: str
    labelTimestamp: str


class TriggeredRule(TypedDict):
    """A stream rule that has stopped an answer."""

    name: str
    path: str
    content: str
    condition: list[str]
    scope: list[str]


class TurnEndEvent(TypedDict):
    type: Literal['turn_end']
    message: Message
    toolResults: list[Message]


class TurnStartEvent(TypedDict):
    type: Literal['turn_start']


class _UiRequestSelect(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['select']
    title: str
    options: list[str]


class UiRequestSelect(_UiRequestSelect, total=False):
    timeout: int


class _UiRequestConfirm(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['confirm']
    title: str
    message: str


class UiRequestConfirm(_UiRequestConfirm, total=False):
    timeout: int


class _UiRequestInput(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['input']
    title: str


class UiRequestInput(_UiRequestInput, total=False):
    placeholder: str
    timeout: int


class _UiRequestEditor(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['editor']
    title: str


class UiRequestEditor(_UiRequestEditor, total=False):
    prefill: str


class UiRequestCancel(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['cancel']
    targetId: str


class _UiRequestNotify(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['notify']
    message: str


class UiRequestNotify(_UiRequestNotify, total=False):
    notifyType: str


class _UiRequestSetStatus(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['setStatus']
    statusKey: str


class UiRequestSetStatus(_UiRequestSetStatus, total=False):
    statusText: str


class _UiRequestSetWidget(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['setWidget']
    widgetKey: str


class UiRequestSetWidget(_UiRequestSetWidget, total=False):
    widgetLines: list[str]
    widgetPlacement: str


class UiRequestSetTitle(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['setTitle']
    title: str


class UiRequestSetEditorText(TypedDict):
    type: Literal['extension_ui_request']
    id: str
    method: Literal['set_editor_text']
    text: str


#: `extension_ui_request`: a question or a display change of an extension.
UiRequest: TypeAlias = "Union[UiRequestSelect, UiRequestConfirm, UiRequestInput, UiRequestEditor, UiRequestCancel, UiRequestNotify, UiRequestSetStatus, UiRequestSetWidget, UiRequestSetTitle, UiRequestSetEditorText]"


#: What silence means.
Unattended: TypeAlias = "Literal['deny', 'allow']"


class _Usage(TypedDict):
    input: int
    output: int
    cacheRead: int
    cacheWrite: int
    totalTokens: int
    cost: Cost


class Usage(_Usage, total=False):
    """Tokens of one model answer. `input` excludes cached tokens, `output` includes reasoning."""

    cacheWrite1h: int
    reasoning: int
    estimated: bool


class _UsageEntry(TypedDict):
    id: str
    parentId: Union[str, None]
    timestamp: str
    kind: str
    provider: str
    model: str
    usage: Usage


class UsageEntry(_UsageEntry, total=False):
    """Tokens spent beside the conversation; read, never written."""

    note: str


class _UserMessage(TypedDict):
    role: Literal['user']
    content: Content
    timestamp: int


class UserMessage(_UserMessage, total=False):
    """What the person (or the host on their behalf) said."""

    attribution: str


#: What becomes of a call, the strictest last.
Verdict: TypeAlias = "Literal['allow', 'ask', 'deny']"


class custom2(TypedDict):
    """An entry of the audit, as the session file has it."""

    id: str
    parentId: Union[str, None]
    timestamp: str
    customType: str
    data: AuditRecord
