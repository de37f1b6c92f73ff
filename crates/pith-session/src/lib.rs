//! pith-session
