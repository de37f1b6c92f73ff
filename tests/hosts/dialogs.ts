// Asks one question of each kind and tells what came back; the drivers of tests/hosts answer.
export default function (pi) {
  pi.registerCommand("ask", {
    description: "Ask one question of each kind",
    handler: async (_, { ui }) => {
      const answers = [
        await ui.select("Which one?", ["first", "second"]),
        await ui.confirm("Delete it?", "This cannot be undone."),
        await ui.input("A name?", "such as main"),
        await ui.editor("The message", "Fix the build"),
      ];
      ui.notify(`answers ${JSON.stringify(answers)}`);
    },
  });
}
