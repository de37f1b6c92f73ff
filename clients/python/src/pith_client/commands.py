"""A method for each command of the protocol.

Generated from the schema by ``generate.py``; do not edit.
"""

from __future__ import annotations

from typing import Any, Union, cast

from .types import (
    Accept,
    ApprovalMode,
    Audit,
    BashResult,
    Cancelled,
    Checkpoints,
    Client,
    Commands,
    CompactionResult,
    CycledModel,
    Diagnostics,
    Entries,
    Exported,
    ForkMessages,
    Forked,
    Greeting,
    HostToolInput,
    HostToolNames,
    ImageBlock,
    Integrations,
    InterruptMode,
    LastText,
    Level,
    Levels,
    LimitUses,
    McpServerStates,
    McpServers,
    McpSignIn,
    Messages,
    Model,
    Models,
    Navigated,
    PermissionMode,
    Permissions,
    PromptDisposition,
    QueueMode,
    Queues,
    Reloaded,
    Restored,
    SandboxProfile,
    SandboxState,
    SessionStats,
    Sessions,
    State,
    StreamUpdates,
    StreamingBehavior,
    ThinkingLevel,
    TodoPhaseInput,
    TodoPhases,
    Tree,
)


class CommandMethods:
    """Each blocks until pith has answered."""

    def ask(self, kind: str, /, **fields: Any) -> Any:
        """Sends a command and returns the data of its response."""
        raise NotImplementedError

    def abort_and_prompt(self, message: str, *, images: list[ImageBlock] | None = None) -> PromptDisposition:
        """Stops the run, then prompts."""
        return cast("PromptDisposition", self.ask('abort_and_prompt', message=message, images=images))

    def abort_bash(self, *, target_id: Any | None = None) -> None:
        """See ``docs/protocol.md``."""
        self.ask('abort_bash', targetId=target_id)

    def abort(self) -> None:
        """Stops the run; answered when it has stopped."""
        self.ask('abort')

    def abort_retry(self) -> None:
        """See ``docs/protocol.md``."""
        self.ask('abort_retry')

    def bash(self, command: str, *, exclude_from_context: bool | None = None) -> BashResult:
        """See ``docs/protocol.md``."""
        return cast("BashResult", self.ask('bash', command=command, excludeFromContext=exclude_from_context))

    def branch(self, entry_id: str, *, restore_files: bool | None = None) -> Forked:
        """See ``docs/protocol.md``."""
        return cast("Forked", self.ask('branch', entryId=entry_id, restoreFiles=restore_files))

    def clear_queue(self) -> Queues:
        """Empties both queues and returns what was in them."""
        return cast("Queues", self.ask('clear_queue'))

    def clone(self) -> Cancelled:
        """See ``docs/protocol.md``."""
        return cast("Cancelled", self.ask('clone'))

    def compact(self, *, custom_instructions: str | None = None) -> CompactionResult:
        """See ``docs/protocol.md``."""
        return cast("CompactionResult", self.ask('compact', customInstructions=custom_instructions))

    def cycle_model(self) -> Union[CycledModel, None]:
        """See ``docs/protocol.md``."""
        return cast("Union[CycledModel, None]", self.ask('cycle_model'))

    def cycle_thinking_level(self) -> Union[Level, None]:
        """See ``docs/protocol.md``."""
        return cast("Union[Level, None]", self.ask('cycle_thinking_level'))

    def export_html(self, *, output_path: str | None = None) -> Exported:
        """See ``docs/protocol.md``."""
        return cast("Exported", self.ask('export_html', outputPath=output_path))

    def follow_up(self, message: str, *, images: list[ImageBlock] | None = None) -> PromptDisposition:
        """Queues a message for when the run would end."""
        return cast("PromptDisposition", self.ask('follow_up', message=message, images=images))

    def fork(self, entry_id: str, *, restore_files: bool | None = None) -> Forked:
        """See ``docs/protocol.md``."""
        return cast("Forked", self.ask('fork', entryId=entry_id, restoreFiles=restore_files))

    def get_audit(self, *, since: str | None = None) -> Audit:
        """What was asked, allowed and refused: the entries of the audit, or those after one."""
        return cast("Audit", self.ask('get_audit', since=since))

    def get_available_models(self) -> Models:
        """See ``docs/protocol.md``."""
        return cast("Models", self.ask('get_available_models'))

    def get_available_thinking_levels(self) -> Levels:
        """See ``docs/protocol.md``."""
        return cast("Levels", self.ask('get_available_thinking_levels'))

    def get_branch_messages(self) -> ForkMessages:
        """See ``docs/protocol.md``."""
        return cast("ForkMessages", self.ask('get_branch_messages'))

    def get_commands(self) -> Commands:
        """See ``docs/protocol.md``."""
        return cast("Commands", self.ask('get_commands'))

    def get_diagnostics(self) -> Diagnostics:
        """What is wrong with settings, models and resources."""
        return cast("Diagnostics", self.ask('get_diagnostics'))

    def get_entries(self, *, since: str | None = None) -> Entries:
        """See ``docs/protocol.md``."""
        return cast("Entries", self.ask('get_entries', since=since))

    def get_fork_messages(self) -> ForkMessages:
        """See ``docs/protocol.md``."""
        return cast("ForkMessages", self.ask('get_fork_messages'))

    def get_integrations(self) -> Integrations:
        """See ``docs/protocol.md``."""
        return cast("Integrations", self.ask('get_integrations'))

    def get_last_assistant_text(self) -> LastText:
        """See ``docs/protocol.md``."""
        return cast("LastText", self.ask('get_last_assistant_text'))

    def get_mcp_servers(self, *, connect: bool | None = None) -> McpServers:
        """The MCP servers and their tools; `connect` starts those that do not run."""
        return cast("McpServers", self.ask('get_mcp_servers', connect=connect))

    def get_messages(self) -> Messages:
        """See ``docs/protocol.md``."""
        return cast("Messages", self.ask('get_messages'))

    def get_permissions(self) -> Permissions:
        """The rules about tool calls, and the mode for calls that no rule is about."""
        return cast("Permissions", self.ask('get_permissions'))

    def get_session_stats(self) -> SessionStats:
        """See ``docs/protocol.md``."""
        return cast("SessionStats", self.ask('get_session_stats'))

    def get_state(self) -> State:
        """See ``docs/protocol.md``."""
        return cast("State", self.ask('get_state'))

    def get_tree(self, *, flat: bool | None = None) -> Tree:
        """All entries, nested by parent, or as one list with `flat`."""
        return cast("Tree", self.ask('get_tree', flat=flat))

    def hello(self, *, client: Client | None = None, accept: Accept | None = None) -> Greeting:
        """Says who the host is and what it accepts; answers what pith can do. Optional, at any time, the last one counts."""
        return cast("Greeting", self.ask('hello', client=client, accept=accept))

    def list_checkpoints(self, *, limit: int | None = None) -> Checkpoints:
        """What files were before the calls of this session, newest first."""
        return cast("Checkpoints", self.ask('list_checkpoints', limit=limit))

    def list_sessions(self, *, all: bool | None = None) -> Sessions:
        """The sessions of this working directory, or of all."""
        return cast("Sessions", self.ask('list_sessions', all=all))

    def mcp_login(self, name: str) -> McpSignIn:
        """Begins a sign-in to an MCP server; the user opens the page of the answer."""
        return cast("McpSignIn", self.ask('mcp_login', name=name))

    def mcp_reconnect(self, name: str) -> McpServerStates:
        """Ends an MCP server and starts it again."""
        return cast("McpServerStates", self.ask('mcp_reconnect', name=name))

    def navigate_tree(self, target_id: str, *, summarize: bool | None = None, custom_instructions: str | None = None, replace_instructions: bool | None = None, label: str | None = None, restore_files: bool | None = None) -> Navigated:
        """Continues from another entry of the session."""
        return cast("Navigated", self.ask('navigate_tree', targetId=target_id, summarize=summarize, customInstructions=custom_instructions, replaceInstructions=replace_instructions, label=label, restoreFiles=restore_files))

    def new_session(self, *, parent_session: str | None = None) -> Cancelled:
        """See ``docs/protocol.md``."""
        return cast("Cancelled", self.ask('new_session', parentSession=parent_session))

    def pause(self, *, freeze: bool | None = None) -> None:
        """Holds before the next request to the model and the next tool call; `freeze` also stops running commands."""
        self.ask('pause', freeze=freeze)

    def prompt(self, message: str, *, images: list[ImageBlock] | None = None, streaming_behavior: StreamingBehavior | None = None, locale: str | None = None, traceparent: str | None = None) -> PromptDisposition:
        """Starts a run, or queues while one is active and `streamingBehavior` says how."""
        return cast("PromptDisposition", self.ask('prompt', message=message, images=images, streamingBehavior=streaming_behavior, locale=locale, traceparent=traceparent))

    def reload(self) -> Reloaded:
        """Reads settings, models and resources again; answers what changed."""
        return cast("Reloaded", self.ask('reload'))

    def restore_checkpoint(self, *, checkpoint_id: str | None = None, paths: list[str] | None = None, dry_run: bool | None = None, force: bool | None = None) -> Restored:
        """Puts files back to what they were before a call. Without `checkpointId` the id of the command names the checkpoint."""
        return cast("Restored", self.ask('restore_checkpoint', checkpointId=checkpoint_id, paths=paths, dryRun=dry_run, force=force))

    def resume(self) -> None:
        """Goes on after `pause`."""
        self.ask('resume')

    def set_approval_mode(self, mode: ApprovalMode) -> Permissions:
        """Changes the mode by the name that editors have for it; the same as `set_permissions` with that mode."""
        return cast("Permissions", self.ask('set_approval_mode', mode=mode))

    def set_auto_compaction(self, enabled: bool) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_auto_compaction', enabled=enabled)

    def set_auto_retry(self, enabled: bool) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_auto_retry', enabled=enabled)

    def set_follow_up_mode(self, mode: QueueMode) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_follow_up_mode', mode=mode)

    def set_host_tools(self, tools: list[HostToolInput]) -> HostToolNames:
        """See ``docs/protocol.md``."""
        return cast("HostToolNames", self.ask('set_host_tools', tools=tools))

    def set_interrupt_mode(self, mode: InterruptMode) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_interrupt_mode', mode=mode)

    def set_label(self, entry_id: str, *, label: str | None = None) -> None:
        """Puts a bookmark on an entry, or removes it."""
        self.ask('set_label', entryId=entry_id, label=label)

    def set_limits(self, limits: dict[str, Any]) -> LimitUses:
        """Sets limits by name, as in `limits` of the settings, for as long as pith runs; `null` takes one away."""
        return cast("LimitUses", self.ask('set_limits', limits=limits))

    def set_locale(self, locale: str) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_locale', locale=locale)

    def set_mcp_enabled(self, name: str, enabled: bool) -> McpServerStates:
        """Switches an MCP server on or off, for this session."""
        return cast("McpServerStates", self.ask('set_mcp_enabled', name=name, enabled=enabled))

    def set_mcp_servers(self, servers: dict[str, Any], *, wait: bool | None = None) -> McpServerStates:
        """Replaces the host's MCP servers, by name, as in `mcpServers` of a file; `wait` answers when they have started."""
        return cast("McpServerStates", self.ask('set_mcp_servers', servers=servers, wait=wait))

    def set_model(self, provider: str, model_id: str) -> Model:
        """See ``docs/protocol.md``."""
        return cast("Model", self.ask('set_model', provider=provider, modelId=model_id))

    def set_permissions(self, *, mode: PermissionMode | None = None, allow: list[str] | None = None, ask: list[str] | None = None, deny: list[str] | None = None, forget: list[str] | None = None) -> Permissions:
        """Changes the mode, adds rules or takes rules back, for this session; grants of the project are taken back for good."""
        return cast("Permissions", self.ask('set_permissions', mode=mode, allow=allow, ask=ask, deny=deny, forget=forget))

    def set_sandbox(self, *, profile: SandboxProfile | None = None, network: dict[str, Any] | None = None, filesystem: dict[str, Any] | None = None) -> SandboxState:
        """Tightens the sandbox for what starts from now on; loosening needs `--sandbox-may-loosen`. `network` and `filesystem` are as in the settings."""
        return cast("SandboxState", self.ask('set_sandbox', profile=profile, network=network, filesystem=filesystem))

    def set_session_name(self, name: str) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_session_name', name=name)

    def set_steering_mode(self, mode: QueueMode) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_steering_mode', mode=mode)

    def set_stream_updates(self, mode: StreamUpdates) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_stream_updates', mode=mode)

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """See ``docs/protocol.md``."""
        self.ask('set_thinking_level', level=level)

    def set_todos(self, phases: list[TodoPhaseInput]) -> TodoPhases:
        """See ``docs/protocol.md``."""
        return cast("TodoPhases", self.ask('set_todos', phases=phases))

    def steer(self, message: str, *, images: list[ImageBlock] | None = None) -> PromptDisposition:
        """Queues a message for the next pause of the run."""
        return cast("PromptDisposition", self.ask('steer', message=message, images=images))

    def switch_session(self, session_path: str) -> Cancelled:
        """See ``docs/protocol.md``."""
        return cast("Cancelled", self.ask('switch_session', sessionPath=session_path))


class AsyncCommandMethods:
    """Each is awaited until pith has answered."""

    async def ask(self, kind: str, /, **fields: Any) -> Any:
        """Sends a command and returns the data of its response."""
        raise NotImplementedError

    async def abort_and_prompt(self, message: str, *, images: list[ImageBlock] | None = None) -> PromptDisposition:
        """Stops the run, then prompts."""
        return cast("PromptDisposition", await self.ask('abort_and_prompt', message=message, images=images))

    async def abort_bash(self, *, target_id: Any | None = None) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('abort_bash', targetId=target_id)

    async def abort(self) -> None:
        """Stops the run; answered when it has stopped."""
        await self.ask('abort')

    async def abort_retry(self) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('abort_retry')

    async def bash(self, command: str, *, exclude_from_context: bool | None = None) -> BashResult:
        """See ``docs/protocol.md``."""
        return cast("BashResult", await self.ask('bash', command=command, excludeFromContext=exclude_from_context))

    async def branch(self, entry_id: str, *, restore_files: bool | None = None) -> Forked:
        """See ``docs/protocol.md``."""
        return cast("Forked", await self.ask('branch', entryId=entry_id, restoreFiles=restore_files))

    async def clear_queue(self) -> Queues:
        """Empties both queues and returns what was in them."""
        return cast("Queues", await self.ask('clear_queue'))

    async def clone(self) -> Cancelled:
        """See ``docs/protocol.md``."""
        return cast("Cancelled", await self.ask('clone'))

    async def compact(self, *, custom_instructions: str | None = None) -> CompactionResult:
        """See ``docs/protocol.md``."""
        return cast("CompactionResult", await self.ask('compact', customInstructions=custom_instructions))

    async def cycle_model(self) -> Union[CycledModel, None]:
        """See ``docs/protocol.md``."""
        return cast("Union[CycledModel, None]", await self.ask('cycle_model'))

    async def cycle_thinking_level(self) -> Union[Level, None]:
        """See ``docs/protocol.md``."""
        return cast("Union[Level, None]", await self.ask('cycle_thinking_level'))

    async def export_html(self, *, output_path: str | None = None) -> Exported:
        """See ``docs/protocol.md``."""
        return cast("Exported", await self.ask('export_html', outputPath=output_path))

    async def follow_up(self, message: str, *, images: list[ImageBlock] | None = None) -> PromptDisposition:
        """Queues a message for when the run would end."""
        return cast("PromptDisposition", await self.ask('follow_up', message=message, images=images))

    async def fork(self, entry_id: str, *, restore_files: bool | None = None) -> Forked:
        """See ``docs/protocol.md``."""
        return cast("Forked", await self.ask('fork', entryId=entry_id, restoreFiles=restore_files))

    async def get_audit(self, *, since: str | None = None) -> Audit:
        """What was asked, allowed and refused: the entries of the audit, or those after one."""
        return cast("Audit", await self.ask('get_audit', since=since))

    async def get_available_models(self) -> Models:
        """See ``docs/protocol.md``."""
        return cast("Models", await self.ask('get_available_models'))

    async def get_available_thinking_levels(self) -> Levels:
        """See ``docs/protocol.md``."""
        return cast("Levels", await self.ask('get_available_thinking_levels'))

    async def get_branch_messages(self) -> ForkMessages:
        """See ``docs/protocol.md``."""
        return cast("ForkMessages", await self.ask('get_branch_messages'))

    async def get_commands(self) -> Commands:
        """See ``docs/protocol.md``."""
        return cast("Commands", await self.ask('get_commands'))

    async def get_diagnostics(self) -> Diagnostics:
        """What is wrong with settings, models and resources."""
        return cast("Diagnostics", await self.ask('get_diagnostics'))

    async def get_entries(self, *, since: str | None = None) -> Entries:
        """See ``docs/protocol.md``."""
        return cast("Entries", await self.ask('get_entries', since=since))

    async def get_fork_messages(self) -> ForkMessages:
        """See ``docs/protocol.md``."""
        return cast("ForkMessages", await self.ask('get_fork_messages'))

    async def get_integrations(self) -> Integrations:
        """See ``docs/protocol.md``."""
        return cast("Integrations", await self.ask('get_integrations'))

    async def get_last_assistant_text(self) -> LastText:
        """See ``docs/protocol.md``."""
        return cast("LastText", await self.ask('get_last_assistant_text'))

    async def get_mcp_servers(self, *, connect: bool | None = None) -> McpServers:
        """The MCP servers and their tools; `connect` starts those that do not run."""
        return cast("McpServers", await self.ask('get_mcp_servers', connect=connect))

    async def get_messages(self) -> Messages:
        """See ``docs/protocol.md``."""
        return cast("Messages", await self.ask('get_messages'))

    async def get_permissions(self) -> Permissions:
        """The rules about tool calls, and the mode for calls that no rule is about."""
        return cast("Permissions", await self.ask('get_permissions'))

    async def get_session_stats(self) -> SessionStats:
        """See ``docs/protocol.md``."""
        return cast("SessionStats", await self.ask('get_session_stats'))

    async def get_state(self) -> State:
        """See ``docs/protocol.md``."""
        return cast("State", await self.ask('get_state'))

    async def get_tree(self, *, flat: bool | None = None) -> Tree:
        """All entries, nested by parent, or as one list with `flat`."""
        return cast("Tree", await self.ask('get_tree', flat=flat))

    async def hello(self, *, client: Client | None = None, accept: Accept | None = None) -> Greeting:
        """Says who the host is and what it accepts; answers what pith can do. Optional, at any time, the last one counts."""
        return cast("Greeting", await self.ask('hello', client=client, accept=accept))

    async def list_checkpoints(self, *, limit: int | None = None) -> Checkpoints:
        """What files were before the calls of this session, newest first."""
        return cast("Checkpoints", await self.ask('list_checkpoints', limit=limit))

    async def list_sessions(self, *, all: bool | None = None) -> Sessions:
        """The sessions of this working directory, or of all."""
        return cast("Sessions", await self.ask('list_sessions', all=all))

    async def mcp_login(self, name: str) -> McpSignIn:
        """Begins a sign-in to an MCP server; the user opens the page of the answer."""
        return cast("McpSignIn", await self.ask('mcp_login', name=name))

    async def mcp_reconnect(self, name: str) -> McpServerStates:
        """Ends an MCP server and starts it again."""
        return cast("McpServerStates", await self.ask('mcp_reconnect', name=name))

    async def navigate_tree(self, target_id: str, *, summarize: bool | None = None, custom_instructions: str | None = None, replace_instructions: bool | None = None, label: str | None = None, restore_files: bool | None = None) -> Navigated:
        """Continues from another entry of the session."""
        return cast("Navigated", await self.ask('navigate_tree', targetId=target_id, summarize=summarize, customInstructions=custom_instructions, replaceInstructions=replace_instructions, label=label, restoreFiles=restore_files))

    async def new_session(self, *, parent_session: str | None = None) -> Cancelled:
        """See ``docs/protocol.md``."""
        return cast("Cancelled", await self.ask('new_session', parentSession=parent_session))

    async def pause(self, *, freeze: bool | None = None) -> None:
        """Holds before the next request to the model and the next tool call; `freeze` also stops running commands."""
        await self.ask('pause', freeze=freeze)

    async def prompt(self, message: str, *, images: list[ImageBlock] | None = None, streaming_behavior: StreamingBehavior | None = None, locale: str | None = None, traceparent: str | None = None) -> PromptDisposition:
        """Starts a run, or queues while one is active and `streamingBehavior` says how."""
        return cast("PromptDisposition", await self.ask('prompt', message=message, images=images, streamingBehavior=streaming_behavior, locale=locale, traceparent=traceparent))

    async def reload(self) -> Reloaded:
        """Reads settings, models and resources again; answers what changed."""
        return cast("Reloaded", await self.ask('reload'))

    async def restore_checkpoint(self, *, checkpoint_id: str | None = None, paths: list[str] | None = None, dry_run: bool | None = None, force: bool | None = None) -> Restored:
        """Puts files back to what they were before a call. Without `checkpointId` the id of the command names the checkpoint."""
        return cast("Restored", await self.ask('restore_checkpoint', checkpointId=checkpoint_id, paths=paths, dryRun=dry_run, force=force))

    async def resume(self) -> None:
        """Goes on after `pause`."""
        await self.ask('resume')

    async def set_approval_mode(self, mode: ApprovalMode) -> Permissions:
        """Changes the mode by the name that editors have for it; the same as `set_permissions` with that mode."""
        return cast("Permissions", await self.ask('set_approval_mode', mode=mode))

    async def set_auto_compaction(self, enabled: bool) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_auto_compaction', enabled=enabled)

    async def set_auto_retry(self, enabled: bool) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_auto_retry', enabled=enabled)

    async def set_follow_up_mode(self, mode: QueueMode) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_follow_up_mode', mode=mode)

    async def set_host_tools(self, tools: list[HostToolInput]) -> HostToolNames:
        """See ``docs/protocol.md``."""
        return cast("HostToolNames", await self.ask('set_host_tools', tools=tools))

    async def set_interrupt_mode(self, mode: InterruptMode) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_interrupt_mode', mode=mode)

    async def set_label(self, entry_id: str, *, label: str | None = None) -> None:
        """Puts a bookmark on an entry, or removes it."""
        await self.ask('set_label', entryId=entry_id, label=label)

    async def set_limits(self, limits: dict[str, Any]) -> LimitUses:
        """Sets limits by name, as in `limits` of the settings, for as long as pith runs; `null` takes one away."""
        return cast("LimitUses", await self.ask('set_limits', limits=limits))

    async def set_locale(self, locale: str) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_locale', locale=locale)

    async def set_mcp_enabled(self, name: str, enabled: bool) -> McpServerStates:
        """Switches an MCP server on or off, for this session."""
        return cast("McpServerStates", await self.ask('set_mcp_enabled', name=name, enabled=enabled))

    async def set_mcp_servers(self, servers: dict[str, Any], *, wait: bool | None = None) -> McpServerStates:
        """Replaces the host's MCP servers, by name, as in `mcpServers` of a file; `wait` answers when they have started."""
        return cast("McpServerStates", await self.ask('set_mcp_servers', servers=servers, wait=wait))

    async def set_model(self, provider: str, model_id: str) -> Model:
        """See ``docs/protocol.md``."""
        return cast("Model", await self.ask('set_model', provider=provider, modelId=model_id))

    async def set_permissions(self, *, mode: PermissionMode | None = None, allow: list[str] | None = None, ask: list[str] | None = None, deny: list[str] | None = None, forget: list[str] | None = None) -> Permissions:
        """Changes the mode, adds rules or takes rules back, for this session; grants of the project are taken back for good."""
        return cast("Permissions", await self.ask('set_permissions', mode=mode, allow=allow, ask=ask, deny=deny, forget=forget))

    async def set_sandbox(self, *, profile: SandboxProfile | None = None, network: dict[str, Any] | None = None, filesystem: dict[str, Any] | None = None) -> SandboxState:
        """Tightens the sandbox for what starts from now on; loosening needs `--sandbox-may-loosen`. `network` and `filesystem` are as in the settings."""
        return cast("SandboxState", await self.ask('set_sandbox', profile=profile, network=network, filesystem=filesystem))

    async def set_session_name(self, name: str) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_session_name', name=name)

    async def set_steering_mode(self, mode: QueueMode) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_steering_mode', mode=mode)

    async def set_stream_updates(self, mode: StreamUpdates) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_stream_updates', mode=mode)

    async def set_thinking_level(self, level: ThinkingLevel) -> None:
        """See ``docs/protocol.md``."""
        await self.ask('set_thinking_level', level=level)

    async def set_todos(self, phases: list[TodoPhaseInput]) -> TodoPhases:
        """See ``docs/protocol.md``."""
        return cast("TodoPhases", await self.ask('set_todos', phases=phases))

    async def steer(self, message: str, *, images: list[ImageBlock] | None = None) -> PromptDisposition:
        """Queues a message for the next pause of the run."""
        return cast("PromptDisposition", await self.ask('steer', message=message, images=images))

    async def switch_session(self, session_path: str) -> Cancelled:
        """See ``docs/protocol.md``."""
        return cast("Cancelled", await self.ask('switch_session', sessionPath=session_path))
