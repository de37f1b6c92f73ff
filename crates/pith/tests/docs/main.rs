//! Holds the documents against the program: links, variables, and every frame of the reference.

mod environment;
mod exchanges;
mod frames;
mod links;
mod models;
mod pages;
mod recipes;
mod scenes;
