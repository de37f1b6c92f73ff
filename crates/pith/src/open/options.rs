//! Makes a session's options from flags, variables, settings and the dialect.

use std::time::Duration;

use pith_config::settings::Limits;
use pith_config::{Environment, Settings};
use pith_protocol::answers::Wire;
use pith_protocol::{CacheRetention, StreamUpdates};
use pith_resources::HOST_ANSWER_LIMIT;
use pith_session::{Attendance, LimitScope, RetryPolicy, SessionOptions, WorkLimits};

use crate::cli::{self, Cli};
use crate::dialect::Dialect;
use crate::rpc::MAX_LINE;

/// The choices that do not depend on settings.
#[derive(Clone)]
pub(super) struct Choices {
    dialect: &'static Dialect,
    /// Whether hosts expect what only pi does.
    is_called_pi: bool,
    stream_updates: StreamUpdates,
    cache: CacheRetention,
    name: Option<String>,
    host_tool_timeout: Option<Duration>,
    limits: WorkLimits,
    session_limits: Limits,
    wire: Wire,
    is_replaceable: bool,
    has_ui: bool,
    trust_answer_limit: Option<Duration>,
    attendance: Attendance,
}

impl Choices {
    pub fn new(
        cli: &Cli,
        dialect: &'static Dialect,
        environment: &Environment,
        mode: pith_ext::Mode,
    ) -> anyhow::Result<Self> {
        Ok(Choices {
            dialect,
            is_called_pi: cli.is_called_pi,
            stream_updates: stream_updates(cli, environment)?,
            cache: match environment.get("PI_CACHE_RETENTION").as_deref() {
                Some("long") => CacheRetention::Long,
                Some("none") => CacheRetention::None,
                _ => CacheRetention::Short,
            },
            name: cli.name.clone(),
            host_tool_timeout: cli.host_tool_timeout,
            limits: WorkLimits {
                turns: cli.max_turns,
                cost: cli.max_cost,
                time: cli.timeout,
                scope: match mode {
                    pith_ext::Mode::Print | pith_ext::Mode::Json => LimitScope::Session,
                    pith_ext::Mode::Tui | pith_ext::Mode::Rpc => LimitScope::Prompt,
                },
            },
            session_limits: cli.limits.clone(),
            wire: Wire {
                dialect: dialect.name,
                hidden_events: dialect.hidden_events,
                max_line_bytes: cli.max_line_bytes.unwrap_or(MAX_LINE) as u64,
            },
            is_replaceable: true,
            has_ui: matches!(mode, pith_ext::Mode::Rpc | pith_ext::Mode::Tui),
            trust_answer_limit: Some(HOST_ANSWER_LIMIT),
            attendance: match mode {
                pith_ext::Mode::Print | pith_ext::Mode::Json => Attendance::Nobody,
                pith_ext::Mode::Rpc => Attendance::Unsure,
                pith_ext::Mode::Tui => Attendance::Present,
            },
        })
    }

    /// Sets whether another session may take the place of this one.
    pub fn replaceable(self, is_replaceable: bool) -> Self {
        Choices { is_replaceable, ..self }
    }

    /// Sets how long the host may take to say whether a project is trusted.
    pub fn answering_trust_within(self, trust_answer_limit: Option<Duration>) -> Self {
        Choices { trust_answer_limit, ..self }
    }

    pub fn options(&self, settings: &Settings) -> SessionOptions {
        let max_turns = settings.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
        SessionOptions {
            steering_mode: settings.steering_mode,
            follow_up_mode: settings.follow_up_mode,
            interrupt_mode: settings.interrupt_mode,
            stream_updates: self.stream_updates,
            auto_compaction: settings.compaction.enabled,
            retry: RetryPolicy {
                is_enabled: settings.retry.enabled,
                max_retries: u32::try_from(settings.retry.max_retries).unwrap_or(u32::MAX),
                base_delay: settings.retry.base_delay,
                max_delay: settings.retry.max_agent_delay,
                max_server_delay: Some(settings.retry.provider.max_retry_delay).filter(|delay| *delay > Duration::ZERO),
            },
            limits: WorkLimits { turns: self.limits.turns.or(max_turns), ..self.limits },
            session_limits: {
                let mut limits = settings.limits.clone();
                limits.override_with(&self.session_limits);
                limits
            },
            block_images: settings.images.block_images,
            cache: self.cache,
            has_ui: self.has_ui,
            attribution: self.dialect.attribution,
            export_app: self.dialect.name,
            wire: self.wire,
            busy_text: self.dialect.busy_text,
            state_has_prompt: self.dialect.state_has_prompt,
            state_has_unknown_model: self.is_called_pi,
            highest_level: self.dialect.highest_level,
            counts_premium_requests: self.dialect.counts_premium_requests,
            tells_late_failures: self.dialect.tells_late_failures,
            reports_aborted_calls: self.dialect.reports_aborted_calls,
            has_todo_tool: self.dialect.keeps_todos,
            todo_reminders: self.dialect.keeps_todos,
            todo_clear_after: settings.tasks.todo_clear_delay,
            host_tool_timeout: self.host_tool_timeout,
            fsync: settings.session.fsync,
            trust_answer_limit: self.trust_answer_limit,
            attendance: self.attendance,
            is_replaceable: self.is_replaceable,
            name: self.name.clone(),
        }
    }
}

fn stream_updates(cli: &Cli, environment: &Environment) -> anyhow::Result<StreamUpdates> {
    match (cli.stream_updates, environment.get("PITH_STREAM_UPDATES")) {
        (Some(mode), _) => Ok(mode),
        (None, Some(value)) => cli::stream_updates(&value).map_err(anyhow::Error::msg),
        (None, None) => Ok(StreamUpdates::Full),
    }
}
