"use strict";
(function () {
  const data = JSON.parse(document.getElementById("figures").textContent);
  const find = (id) => document.getElementById(id);
  const AT_ONCE = 40;

  // Elements are made by hand: text is never read as markup.
  function make(name, attributes, ...content) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    for (const child of content) if (child !== null) element.append(child);
    return element;
  }
  const row = (name, value, style) => make("tr", null, make("th", { scope: "row" }, name), make("td", { class: "value " + (style || "") }, value));
  const weight = (name, value) => row(name, signed(value), value > 0 ? "plus-value" : "minus-value");
  const rows = (lines) => make("table", null, make("tbody", null, ...lines));
  // Words, each apart from the others, whatever the directions of their letters, and what is said of them.
  const listed = (pairs) => pairs.flatMap(([word, tag]) => [make("bdi", null, word), "/" + tag + " "]);
  const percent = (share) => (100 * share).toFixed(1) + " %";
  const signed = (value) => (value > 0 ? "+" : "") + value.toFixed(3);
  const typeOf = (tag) => (/^[A-Za-z]-/.test(tag) ? tag.slice(2) : tag);

  const types = [...new Set((data.classes || []).map(typeOf))].filter((type) => type !== "O").sort();
  const colour = (tag) => (tag === "O" ? "" : "t" + (Math.max(types.indexOf(typeOf(tag)), 0) % 8));

  const sentences = data.sentences || [];
  let shown = [], limit = AT_ONCE, special = null, pressed = null;

  function matches(sentence) {
    const error = find("error").value, type = find("type").value, words = find("words").value.trim().toLowerCase();
    if (words && !sentence.w.join(" ").toLowerCase().includes(words)) return false;
    if (special) {
      const other = sentence.o[data.others.indexOf(special.type)] || [];
      const wanted = (t) => special.error === "only this"
        ? sentence.z[t] === sentence.y[t] && other[t] !== sentence.y[t]
        : other[t] === sentence.y[t] && sentence.z[t] !== sentence.y[t];
      return sentence.y.some((_, t) => wanted(t));
    }
    if (error === "*" && !sentence.y.some((tag, t) => tag !== sentence.z[t])) return false;
    if (error && error !== "*") return sentence.e.some(([kind, of]) => kind === error && (!type || of.includes(type)));
    return !type || sentence.e.some(([, of]) => of.includes(type)) || sentence.y.some((tag) => typeOf(tag) === type);
  }

  function showWord(sentence, t, button) {
    if (pressed) pressed.setAttribute("aria-pressed", "false");
    pressed = button;
    button.setAttribute("aria-pressed", "true");
    const why = sentence.why[t], panel = find("why");
    const likely = sentence.q[t].map(([k, p]) => row(data.classes[k], percent(p)));
    const parts = [make("h3", null, "“", make("bdi", null, sentence.w[t]), "”: " + sentence.z[t]), rows(likely)];
    if (!why) parts.push(make("p", { class: "about" }, data.unexplained));
    else if (why[1] === null) parts.push(make("p", null, "Nothing else is allowed here."));
    else {
      const [tag, rival, margin, nOthers, others, ...pairs] = why, lines = [];
      for (let k = 0; k < pairs.length; k += 2) lines.push(weight(make("bdi", null, data.names[pairs[k]]), pairs[k + 1]));
      if (nOthers) lines.push(row(nOthers + " others", signed(others)));
      lines.push(row("margin", signed(margin)));
      parts.push(make("h3", null, "Why " + tag + " and not " + rival), rows(lines));
    }
    const readings = sentence.k.map((tags, k) => {
      const told = listed(tags.map((tag, s) => [sentence.w[s], tag]).filter(([, tag], s) => tag !== (k ? sentence.k[0][s] : "O")));
      return make("li", null, ...(told.length ? told : ["nothing "]), make("span", { class: "about" }, signed(sentence.s[k])));
    });
    parts.push(make("h3", null, "Best readings, and where others differ"), make("ol", null, ...readings));
    panel.replaceChildren(...parts);
  }

  function showSentence(sentence) {
    const words = make("div", { class: "row", role: "group", "aria-label": "sentence " + (sentence.i + 1) });
    sentence.w.forEach((text, t) => {
      const truth = sentence.y[t], found = sentence.z[t], wrong = truth !== found;
      const bar = make("span", { class: "sure" }), isPlain = found === "O" && !wrong;
      bar.style.width = percent(sentence.p[t]).replace(" ", "");
      const title = (wrong ? "true " + truth + ", found " : "") + found + ", " + percent(sentence.p[t]);
      const button = make("button", { type: "button", class: "word" + (wrong ? " wrong" : ""), "aria-pressed": "false", title, tabindex: t ? "-1" : "0" },
        make("span", { class: "tag " + colour(truth) }, truth === "O" ? "" : truth), make("bdi", { class: "text" }, text),
        make("span", { class: "tag " + colour(found) }, isPlain ? "" : found), make("span", { class: "track " + colour(found) }, isPlain ? null : bar));
      button.addEventListener("click", () => showWord(sentence, t, button));
      words.append(button);
    });
    words.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const all = [...words.children], next = all[all.indexOf(document.activeElement) + step];
      if (next) { all.forEach((one) => one.setAttribute("tabindex", "-1")); next.setAttribute("tabindex", "0"); next.focus(); event.preventDefault(); }
    });
    const counts = {};
    for (const [kind] of sentence.e) counts[kind] = (counts[kind] || 0) + 1;
    const errors = Object.entries(counts).map(([kind, n]) => n > 1 ? n + " " + kind : kind).join(", ");
    const about = "sentence " + (sentence.i + 1) + ", loss " + sentence.loss.toFixed(2) + (errors ? ", " + errors : "") + (sentence.cut ? ", cut short" : "");
    const item = make("li", null, make("div", { class: "about" }, about), words);
    sentence.o.forEach((tags, k) => {
      const differing = tags.map((tag, t) => [sentence.w[t], tag]).filter(([, tag], t) => tag !== sentence.z[t]);
      if (differing.length) item.append(make("div", { class: "about" }, data.others[k] + ": ", ...listed(differing)));
    });
    return item;
  }

  function refresh() {
    shown = sentences.filter(matches);
    find("found").replaceChildren(...shown.slice(0, limit).map(showSentence));
    find("count").textContent = shown.length + " of " + sentences.length + " sentences";
    find("more").hidden = shown.length <= limit;
  }

  if (find("found")) {
    types.forEach((type) => find("type").append(make("option", { value: type }, type)));
    ["error", "type", "words"].forEach((id) => find(id).addEventListener("input", () => { special = null; limit = AT_ONCE; refresh(); }));
    find("more").addEventListener("click", () => { limit += AT_ONCE; refresh(); });
    document.querySelectorAll(".leads").forEach((button) => button.addEventListener("click", () => {
      special = null; limit = AT_ONCE;
      if (button.dataset.error.startsWith("only ")) special = { error: button.dataset.error, type: button.dataset.type };
      else { find("error").value = button.dataset.error; find("type").value = button.dataset.type; }
      find("words").value = "";
      refresh();
      find("found").scrollIntoView();
      find("found").querySelector("button")?.focus();
    }));
    refresh();
  }

  // The examples of a model, which are drawn already.
  if (find("drawn")) {
    const examples = [...find("drawn").children];
    let fault = null;
    const showExamples = () => {
      const text = find("text").value.trim().toLowerCase(), isWrong = find("wrong").checked;
      examples.forEach((one) => {
        one.hidden = Boolean((isWrong && !one.dataset.wrong) || (text && !one.textContent.toLowerCase().includes(text))
          || (fault && !(one.dataset.faults || "").split("\n").includes(fault)));
      });
      find("count").textContent = examples.filter((one) => !one.hidden).length + " of " + examples.length + " examples" + (fault ? ": " + fault : "");
      find("all").hidden = !(fault || text || isWrong);
    };
    ["text", "wrong"].forEach((id) => find(id).addEventListener("input", showExamples));
    find("all").addEventListener("click", () => { fault = null; find("text").value = ""; find("wrong").checked = false; showExamples(); find("text").focus(); });
    document.querySelectorAll("[data-fault]").forEach((button) => button.addEventListener("click", () => {
      fault = button.dataset.fault;
      showExamples();
      find("examples").scrollIntoView();
      find("all").focus();
    }));
    showExamples();
  }

  function showFeatures() {
    const sought = find("feature").value.trim().toLowerCase();
    const found = (data.features || []).map(([tag, few, all]) => {
      const isAsked = !sought || tag.toLowerCase().includes(sought);
      return [tag, (isAsked ? all : all.filter(([name]) => name.toLowerCase().includes(sought))).slice(0, few)];
    }).filter(([, some]) => some.length);
    const cards = found.slice(0, AT_ONCE).map(([tag, some]) =>
      make("div", { class: "card" }, make("h4", { class: colour(tag) }, tag), rows(some.map(([name, value]) => weight(make("bdi", null, name), value)))));
    find("cards").textContent = found.length > AT_ONCE ? AT_ONCE + " of " + found.length + " labels" : "";
    find("features").replaceChildren(...(cards.length ? cards : [make("p", null, "No label, and no feature among the strongest, has that in its name.")]));
  }
  if (find("feature")) { find("feature").addEventListener("input", showFeatures); showFeatures(); }

  // The entities of texts, which are marked already.
  if (find("least")) {
    const marks = [...document.querySelectorAll(".entity")];
    const showLeast = () => {
      const least = Number(find("least").value);
      marks.forEach((mark) => mark.classList.toggle("below", Number(mark.dataset.p ?? 1) < least));
      find("left").textContent = least.toFixed(2) + ": " + marks.filter((mark) => !mark.matches(".below")).length + " of " + marks.length + " entities";
    };
    find("least").addEventListener("input", showLeast);
    showLeast();
  }

  function showThreshold() {
    const least = Number(find("threshold").value), shares = data.curve[Math.round(least * (data.curve.length - 1))];
    find("at").textContent = least.toFixed(2) + (shares ? ": precision " + percent(shares[0]) + ", recall " + percent(shares[1]) : ": no entity is as probable");
  }
  if (find("threshold") && data.curve) { find("threshold").addEventListener("input", showThreshold); showThreshold(); }
})();
