'use strict';
// The navigator. Every entry is in the document as finished HTML, so this
// script only shows, hides and moves elements; it never builds markup. Parts
// of a long session are kept as text until somebody looks, or there is time.
(() => {
  const get = (id) => document.getElementById(id);
  const root = document.documentElement;
  const nav = get('nav'), stream = get('stream'), search = get('search'), found = get('found');
  const { parents, branch } = JSON.parse(get('tree').textContent);

  // Lines and sections by the position of their entry.
  const lines = [], sections = [], byId = new Map();
  for (const line of get('rows').querySelectorAll('a')) {
    lines[line.dataset.n] = line;
    byId.set(line.hash.slice(1), +line.dataset.n);
  }
  const enter = (place) => {
    for (const section of place.querySelectorAll('.entry')) sections[section.dataset.n] = section;
  };
  enter(stream);
  enter(get('elsewhere').content);

  const newest = [];
  parents.forEach((parent, n) => { if (parent >= 0) newest[parent] = n; });
  const active = new Set(branch);
  let shown = active;

  // The branch an entry is on: the active one if possible, else the one continued last.
  const branchOf = (n) => {
    if (active.has(n)) return branch;
    const path = [];
    for (let at = n; at >= 0; at = parents[at]) path.push(at);
    path.reverse();
    for (let at = newest[n]; at !== undefined; at = newest[at]) path.push(at);
    return path;
  };

  // Parts that are still text are opened when they come near, and one by one while nothing else happens.
  const PART = 100;
  const parts = [...stream.children];
  const held = new Set(parts.filter((part) => part.querySelector('noscript')));
  const near = new IntersectionObserver((changes) => {
    for (const change of changes) if (change.isIntersecting) open(change.target);
  }, { rootMargin: '200% 0px' });
  const open = (part) => {
    if (!held.delete(part)) return;
    near.unobserve(part);
    const template = document.createElement('template');
    template.innerHTML = part.textContent;
    part.replaceChildren(template.content);
    enter(part);
    watch(part);
  };
  const openAll = () => held.forEach(open);
  const whenIdle = window.requestIdleCallback || ((then) => setTimeout(then, 50));
  const openNext = () => {
    const [part] = held;
    if (!part) return;
    open(part);
    whenIdle(openNext);
  };

  const show = (path) => {
    openAll();
    shown = new Set(path);
    stream.replaceChildren();
    observer.disconnect();
    for (let at = 0; at < path.length; at += PART) {
      const part = document.createElement('div');
      part.className = 'part';
      part.append(...path.slice(at, at + PART).map((n) => sections[n]));
      stream.append(part);
      watch(part);
    }
    lines.forEach((line, n) => line.classList.toggle('on', shown.has(n)));
    // A call has a card of its own where its result is not on the branch.
    const results = new Set();
    for (const result of stream.querySelectorAll('[data-result]')) results.add(result.dataset.result);
    for (const call of stream.querySelectorAll('[data-call]')) call.hidden = results.has(call.dataset.call);
    get('elsewhere-note').hidden = path === branch;
  };

  const follow = () => {
    const n = byId.get(location.hash.slice(1));
    if (n === undefined) return;
    if (!shown.has(n)) show(branchOf(n));
    if (!sections[n]) open(parts[Math.floor(branch.indexOf(n) / PART)]);
    const section = sections[n];
    for (const old of document.querySelectorAll('.target')) old.classList.remove('target');
    section.classList.add('target');
    const fold = section.querySelector(':scope > details');
    if (fold) fold.open = true;
    section.scrollIntoView();
    root.classList.remove('nav');
  };

  // Marks the line of the entry at the top of the window.
  let here;
  const mark = (n) => {
    if (here) here.classList.remove('here');
    here = lines[n];
    here.classList.add('here');
    here.scrollIntoView({ block: 'nearest' });
  };
  const observer = new IntersectionObserver((changes) => {
    const seen = changes.filter((change) => change.isIntersecting);
    if (seen.length) mark(seen[0].target.dataset.n);
  }, { rootMargin: '-10% 0px -80% 0px' });
  const watch = (part) => {
    for (const section of part.children) observer.observe(section);
  };

  const filter = (button) => {
    nav.dataset.filter = button.dataset.filter;
    root.classList.toggle('all', button.dataset.filter === 'all');
    for (const other of button.parentNode.children) other.setAttribute('aria-pressed', other === button);
  };

  const find = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    if (words.length) openAll();
    lines.forEach((line, n) => {
      let isHit = true;
      if (words.length) {
        const text = (line.textContent + ' ' + sections[n].textContent).toLowerCase();
        isHit = words.every((word) => text.includes(word));
      }
      line.classList.toggle('miss', !isHit);
      hits += isHit;
    });
    found.textContent = words.length ? hits + (hits === 1 ? ' entry' : ' entries') : '';
  };

  const download = async (button) => {
    const packed = Uint8Array.from(atob(get('raw').textContent), (char) => char.charCodeAt(0));
    const lines = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await new Response(lines, { headers: { 'content-type': 'application/x-ndjson' } }).blob());
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const fold = (isOpen) => {
    openAll();
    for (const details of stream.querySelectorAll('details')) details.open = isOpen;
  };

  let waiting;
  search.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });
  nav.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) filter(button);
    const line = event.target.closest('a');
    // The same fragment again changes nothing, so nobody would hear of it.
    if (line && line.hash === location.hash) follow();
  });
  // The colours are the system's until the reader chooses others; the choice lasts as long as the page is open.
  get('theme').addEventListener('click', () => {
    const dark = get('dark');
    const isDark = matchMedia(dark.media).matches;
    dark.media = isDark ? 'not all' : 'all';
    root.style.colorScheme = isDark ? 'light' : 'dark';
  });
  get('unfold').addEventListener('click', () => fold(true));
  get('fold').addEventListener('click', () => fold(false));
  get('download').addEventListener('click', (event) => download(event.currentTarget));
  get('menu').addEventListener('click', (event) => {
    event.currentTarget.setAttribute('aria-expanded', root.classList.toggle('nav'));
  });
  get('page').addEventListener('click', (event) => {
    if (event.target.id !== 'menu') root.classList.remove('nav');
  });
  get('back').addEventListener('click', (event) => {
    event.preventDefault();
    show(branch);
    scrollTo(0, 0);
  });
  addEventListener('keydown', (event) => {
    if (event.key === '/' && event.target !== search && !event.ctrlKey && !event.metaKey) { event.preventDefault(); root.classList.add('nav'); search.focus(); }
    if (event.key === 'Escape') { search.value = ''; find(); root.classList.remove('nav'); search.blur(); }
  });
  addEventListener('hashchange', follow);
  addEventListener('beforeprint', openAll);

  root.classList.add('js');
  for (const part of parts) held.has(part) ? near.observe(part) : watch(part);
  follow();
  whenIdle(openNext);
})();
