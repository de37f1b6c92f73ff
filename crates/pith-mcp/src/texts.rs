//! What servers add to texts: prompts and resources that the user names, instructions for the model.

use std::path::PathBuf;
use std::sync::Arc;

use pith_agent::BoxFuture;
use pith_protocol::{Block, ImageBlock};

use crate::config::is_same;
use crate::offer::Offer;
use crate::prompts::{Called, command_name, fetch};
use crate::resources::{mentions, read_mentions};
use crate::server::Server;
use crate::servers::Servers;
use crate::state::State;

/// A slash command that is a prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCommand {
    /// What follows the `/`.
    pub name: String,
    pub description: Option<String>,
    /// The file that the server is configured in.
    pub path: Option<PathBuf>,
    pub is_of_project: bool,
}

/// What the user says, after a server has added to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expanded {
    pub text: String,
    pub images: Vec<ImageBlock>,
}

impl Expanded {
    fn of(blocks: Vec<Block>) -> Self {
        let mut expanded = Expanded::default();
        blocks.into_iter().for_each(|block| expanded.add(block));
        expanded
    }

    fn add(&mut self, block: Block) {
        if let Block::Image(image) = block {
            return self.images.push(image);
        }
        let Some(text) = block.as_text() else { return };
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }
}

impl Servers {
    /// The prompts of all servers that are switched on.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        let mut commands = Vec::new();
        for (server, offer) in self.known_offers() {
            commands.extend(offer.prompts.iter().map(|prompt| PromptCommand {
                name: command_name(&server.config.name, &prompt.name),
                description: prompt.description.clone(),
                path: server.config.path.clone(),
                is_of_project: server.config.source.is_of_project(),
            }));
        }
        commands
    }

    /// Names and instructions of the servers whose instructions the model gets.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let offers = self.known_offers().into_iter();
        let heard = offers.filter(|(server, _)| server.config.instructs_model());
        heard.filter_map(|(server, offer)| Some((server.config.name.clone(), offer.instructions.clone()?))).collect()
    }

    /// Returns what a text of the user becomes if it calls a prompt of a server or mentions resources. A text that
    /// does neither reads nothing and is `None`.
    pub fn expand(&self, text: &str) -> Option<BoxFuture<'static, Result<Expanded, String>>> {
        let (called, mentioned) = (Called::read(text), mentions(text));
        if called.is_none() && mentioned.is_empty() {
            return None;
        }
        self.load();
        let servers = self.clone();
        if let Some(called) = called {
            let server = self.all().into_iter().find(|server| called.means(server))?;
            let (prompt, arguments) = (called.prompt.to_owned(), called.arguments.to_owned());
            return Some(Box::pin(async move {
                fetch(&server, &prompt, &arguments, servers.output_dir()).await.map(Expanded::of)
            }));
        }
        let named = |name: &str| self.all().into_iter().find(|server| is_same(&server.config.name, name));
        let mentioned =
            mentioned.into_iter().filter_map(|mention| Some((named(mention.server)?, mention.uri.to_owned())));
        let mentioned: Vec<_> = mentioned.collect();
        if mentioned.is_empty() {
            return None;
        }
        let mut expanded = Expanded { text: text.to_owned(), images: Vec::new() };
        Some(Box::pin(async move {
            read_mentions(&servers, mentioned).await.into_iter().for_each(|block| expanded.add(block));
            Ok(expanded)
        }))
    }

    fn known_offers(&self) -> Vec<(Arc<Server>, Arc<Offer>)> {
        let known = |server: Arc<Server>| {
            let snapshot = server.snapshot();
            Some((server, snapshot.offer.filter(|_| snapshot.state != State::Disabled)?))
        };
        self.all().into_iter().filter_map(known).collect()
    }
}
