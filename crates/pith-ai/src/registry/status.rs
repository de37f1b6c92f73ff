//! Whether a provider is ready, in words a script can test (`auth check`).

use super::Registry;
use super::auth::Missing;

/// The answer of `auth check`. The reasons are stable names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthStatus {
    Ready,
    NotReady(&'static str),
    Invalid(&'static str),
}

impl AuthStatus {
    /// Returns `ready`, `not_ready` or `invalid`.
    pub fn as_str(self) -> &'static str {
        match self {
            AuthStatus::Ready => "ready",
            AuthStatus::NotReady(_) => "not_ready",
            AuthStatus::Invalid(_) => "invalid",
        }
    }

    /// Returns why it is not ready.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            AuthStatus::Ready => None,
            AuthStatus::NotReady(reason) | AuthStatus::Invalid(reason) => Some(reason),
        }
    }
}

/// Where a provider's credential comes from, in the words extensions know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialOrigin {
    /// `runtime`, `stored`, `environment`, `models_json_key`, `models_json_command` or `fallback`.
    pub source: &'static str,
    /// The variables, where those are the source.
    pub label: Option<String>,
    /// A token of a login, not a key.
    pub is_login: bool,
}

impl Registry {
    /// Returns where requests to the provider would take their credential from, without running or asking anything.
    pub fn credential_origin(&self, provider: &str) -> Option<CredentialOrigin> {
        let provider = self.provider(provider)?;
        self.origin_of(&provider)
    }

    /// Whether requests to the provider would have a credential, without running or asking anything.
    pub fn auth_status(&self, provider: &str) -> AuthStatus {
        let Some(provider) = self.provider(provider) else { return AuthStatus::Invalid("provider_not_found") };
        match self.provider_credential(&provider) {
            Ok(()) => AuthStatus::Ready,
            Err(_) if self.auth.problem().is_some() => AuthStatus::Invalid("invalid_state"),
            Err(Missing::Nothing) => AuthStatus::NotReady("credentials_not_configured"),
            Err(Missing::Expired | Missing::Unusable(_)) => AuthStatus::NotReady("credential_not_available"),
        }
    }
}
