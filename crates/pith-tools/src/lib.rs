//! pith-tools
