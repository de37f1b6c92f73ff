export default (pi) => {
    let turns = 0;
    pi.on("session_start", (_, ctx) => ctx.ui.setStatus("turns", "ready"));
    pi.on("turn_start", (_, ctx) => ctx.ui.setStatus("turns", `turn ${++turns}`));
};
