//! pith-testkit
