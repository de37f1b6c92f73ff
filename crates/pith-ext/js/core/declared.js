// The system messages among the messages of a run, as pi 0.87.1 has them: one when the model is first told the prompt and
// its tools, and one whenever these are others than in the run before.

const { getToolStateChanges } = require("internal/transcript");

let told = null; // what the model of this session was told last: { sessionId, content, tools }

exports.withSystem = ({ messages, system, sessionId, ...event }) => {
  if (!system) return { ...event, messages };
  const before = told?.sessionId === sessionId ? told : { content: undefined, tools: [] };
  const { content, toolsAdded: tools } = system;
  told = { sessionId, content, tools };
  const changes = getToolStateChanges(before.tools, tools);
  if (before.content === content && changes.toolsAdded.length === 0 && changes.toolsRemoved.length === 0) return { ...event, messages };
  const message = { role: "system", content: before.content === content ? "" : content, timestamp: messages[0]?.timestamp ?? Date.now() };
  for (const name of ["toolsAdded", "toolsRemoved"]) if (changes[name].length > 0) message[name] = changes[name];
  return { ...event, messages: [message, ...messages] };
};
