//! pith-store
