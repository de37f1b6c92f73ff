//! The binary as people and scripts use it: flags, a single answer, a chat.

mod asks;
mod chat;
mod config;
mod help;
mod hostile;
mod json;
mod mcp;
mod mistakes;
mod packages;
mod permissions;
mod print;
mod sandbox;
mod scenes;
mod scripts;
mod support;
mod words;
