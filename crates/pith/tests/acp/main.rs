//! The binary as an editor sees it: the Agent Client Protocol on stdin and stdout, a scripted model behind it. Every
//! frame is held against the published schema.

mod auth;
mod bad_input;
mod cancel;
mod clients;
mod dialogs;
mod files;
mod loading;
mod opening;
mod options;
mod own;
mod permissions;
mod prompts;
mod random;
mod schema;
mod servers;
mod sessions;
mod steering;
mod support;
mod terminals;
mod trust;
mod updates;
