//! What the host asks about permissions, and changes.

use pith_permissions::{GrantFile, Origin, Rule};
use pith_protocol::commands::{GetPermissions, SetApprovalMode, SetPermissions};
use pith_protocol::fields::Place;
use pith_protocol::permissions::{PermissionRule, Permissions as Answer};
use pith_protocol::{Call, CommandError, ErrorCode};

use super::own::add;
use crate::reply::Reply;
use crate::session::Session;

impl Session {
    pub(crate) fn get_permissions(&mut self, reply: Reply<GetPermissions>) {
        let answer = self.permissions_answer();
        self.answer(reply, Ok(answer));
    }

    /// Changes mode and rules; what cannot be taken as a whole is refused as a whole.
    pub(crate) fn set_permissions(&mut self, call: &SetPermissions, reply: Reply<SetPermissions>) {
        self.change_permissions(call, reply);
    }

    pub(crate) fn set_approval_mode(&mut self, call: &SetApprovalMode, reply: Reply<SetApprovalMode>) {
        let mode = Some(call.mode.into());
        let call = SetPermissions { mode, allow: None, ask: None, deny: None, forget: None };
        self.change_permissions(&call, reply);
    }

    fn change_permissions<C: Call<Answer = Answer>>(&mut self, call: &SetPermissions, reply: Reply<C>) {
        if let Err(error) = self.apply_permissions(call) {
            return self.answer(reply, Err(error));
        }
        self.out.options_changed();
        let answer = self.permissions_answer();
        self.answer(reply, Ok(answer));
        // Calls that wait may need nobody any more.
        self.settle_calls();
    }

    fn apply_permissions(&mut self, call: &SetPermissions) -> Result<(), CommandError> {
        self.rules();
        for (key, rules) in [("allow", &call.allow), ("ask", &call.ask), ("deny", &call.deny)] {
            self.check_rules(key, rules.as_deref().unwrap_or_default())?;
        }
        self.forget_rules(call.forget.as_deref().unwrap_or_default())?;
        if call.mode.is_some() {
            self.permissions.chosen_mode = call.mode;
        }
        self.change_own_rules(|own| {
            own.mode = call.mode.or(own.mode);
            add(&mut own.allow, call.allow.as_deref().unwrap_or_default());
            add(&mut own.ask, call.ask.as_deref().unwrap_or_default());
            add(&mut own.deny, call.deny.as_deref().unwrap_or_default());
            call.forget.iter().flatten().for_each(|rule| _ = own.forget(rule));
        });
        Ok(())
    }

    fn check_rules(&self, key: &str, rules: &[String]) -> Result<(), CommandError> {
        let bases = self.permissions.bases();
        for (index, rule) in rules.iter().enumerate() {
            Rule::parse(rule, Origin::Host, &bases).map_err(|error| {
                let place = Place::new(SetPermissions::NAME, key).element(index);
                CommandError::from(place.invalid(format!("the rule {rule:?} {}", error.reason)))
            })?;
        }
        Ok(())
    }

    /// Takes back grants of the project. Those of the session go with its other rules.
    fn forget_rules(&mut self, forgotten: &[String]) -> Result<(), CommandError> {
        let sources = &self.permissions.sources;
        let (file, cwd) = (GrantFile::in_agent_dir(sources.agent_dir.path()), sources.cwd.clone());
        let rules = self.rules();
        let is_of_project = |rule: &String| rules.read.policy.granted.iter().any(|granted| granted.text == *rule);
        for (index, rule) in forgotten.iter().enumerate() {
            if !is_of_project(rule) && !rules.own.clone().forget(rule) {
                let place = Place::new(SetPermissions::NAME, "forget").element(index);
                return Err(place.invalid(format!("no answer and no host has made the rule {rule:?}")).into());
            }
        }
        if forgotten.iter().any(is_of_project) {
            let failed = |error| CommandError::new(ErrorCode::Io, format!("{}: {error}", file.path().display()));
            file.forget(&cwd, forgotten).map_err(failed)?;
            rules.read.policy.granted.retain(|granted| !forgotten.contains(&granted.text));
        }
        Ok(())
    }

    fn permissions_answer(&mut self) -> Answer {
        let policy = self.rules().policy.clone();
        let shown = |rules: &[Rule]| {
            let one = |rule: &Rule| PermissionRule { rule: rule.text.clone(), from: rule.origin.to_string() };
            rules.iter().map(one).collect()
        };
        Answer {
            mode: policy.mode,
            deny: shown(&policy.deny),
            granted: shown(&policy.granted),
            ask: shown(&policy.ask),
            allow: shown(&policy.allow),
            unattended: policy.unattended,
            timeout_seconds: policy.timeout.map(|timeout| timeout.as_secs()),
        }
    }
}
