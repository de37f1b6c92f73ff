export default (pi) => {
    pi.on("turn_start", () => {});
    pi.on("before_agent_start", (event) => ({ systemPrompt: event.systemPrompt + "\nBe brief." }));
};
