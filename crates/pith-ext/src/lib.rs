//! Extensions: TypeScript run inside pith, on a thread of its own.
