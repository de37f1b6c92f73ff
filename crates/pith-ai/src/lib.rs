//! pith-ai
