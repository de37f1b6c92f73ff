// Messages that an extension adds to the conversation.

const owners = require("internal/owners");
const { defer } = require("internal/calls");
const ops = require("internal/ops");

const deliveries = ["steer", "followUp", "nextTurn"];

const failed = (event) => (error) => owners.report("<runtime>", event, error);

// A request that starts a run is sent when the code that made it reaches its first `await` or returns.
const later = (kind, request) =>
  new Promise((resolve, reject) => defer(() => ops.ask(kind, request).then(resolve, reject)));

exports.askMessage = (message, options = {}) => {
  // A message without a type is one that no renderer knows.
  const customType = message?.customType ?? "";
  if (message === null || typeof message !== "object" || typeof customType !== "string") {
    return Promise.reject(new Error("sendMessage: customType must be a string"));
  }
  const content = typeof message.content === "string" || Array.isArray(message.content) ? message.content : [];
  const send = options?.triggerTurn === true ? later : ops.ask;
  return send("send_message", {
    customType,
    content,
    display: message.display === true,
    details: message.details,
    triggerTurn: typeof options?.triggerTurn === "boolean" ? options.triggerTurn : null,
    deliverAs: deliveries.includes(options?.deliverAs) ? options.deliverAs : null,
  });
};

exports.askUserMessage = (content, options = {}) => {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  if (!Array.isArray(parts)) return Promise.reject(new Error("sendUserMessage: a string or an array of content is expected"));
  const text = parts.filter((part) => part?.type === "text").map((part) => part.text).join("\n");
  const images = parts.filter((part) => part?.type === "image");
  return later("send_user_message", {
    text,
    images,
    deliverAs: ["steer", "followUp"].includes(options?.deliverAs) ? options.deliverAs : null,
    expand: options?.expandPromptTemplates === true,
  });
};

exports.sendMessage = (message, options) => void exports.askMessage(message, options).catch(failed("send_message"));
exports.sendUserMessage = (content, options) => void exports.askUserMessage(content, options).catch(failed("send_user_message"));
