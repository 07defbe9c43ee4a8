// The page as a whole: which view the address names, whether the service is reached, and the question for the token.

import { html, render, useEffect, useState } from "./vendor/preact.js";
import { address } from "./address.js";
import { call, keepToken, tokenNeeded } from "./api.js";
import { ClusterPage } from "./cluster.js";
import { ComparePage } from "./compare.js";
import { EventsPage } from "./events.js";
import { clock } from "./format.js";
import { begin, connection, useData, useSubject } from "./live.js";
import { Overview } from "./overview.js";
import { Card, Failure, Notice, route } from "./parts.js";
import { RunPage } from "./run.js";
import { RunsPage } from "./runs.js";
import { SessionPage, SessionsPage } from "./sessions.js";

const NAV = [["", "Overview"], ["runs", "Runs"], ["clusters", "Tasks"], ["sessions", "Sessions"], ["events", "Events"]];

let moves = 0;
/** The address, and a number that is new with each move of the reader's: what a view writes there itself is none. */
const here = () => ({ ...address(), move: (moves += 1) });

function App() {
  const [{ path: at, asked, move }, go] = useState(here);
  const [locked, lock] = useState(false);
  const [round, again] = useState(0);
  const [config, know] = useState(null);
  useEffect(() => {
    const moved = () => {
      go(here());
      scrollTo(0, 0);
    };
    const ask = () => lock(true);
    addEventListener("hashchange", moved);
    tokenNeeded.add(ask);
    call("/ui/config.json").then(know, () => {});
    begin();
    return () => {
      removeEventListener("hashchange", moved);
      tokenNeeded.delete(ask);
    };
  }, []);
  useEffect(() => {
    document.title = [at.filter(Boolean).slice(-1)[0], "Tenfold"].filter(Boolean).join(" · ");
  }, [at.join("/")]);
  const given = (token) => {
    keepToken(token);
    lock(false);
    again(round + 1);
    begin();
  };
  return html`
    <a class="skip" href="#content" onClick=${(e) => { e.preventDefault(); document.getElementById("content").focus(); }}>Skip to the content</a>
    <${Header} section=${at[0]} />
    <main id="content" tabindex="-1" key=${`${round} ${move}`}>${locked ? html`<${Token} given=${given} />` : html`<${Lost} /><${View} at=${at} asked=${asked} config=${config} />`}</main>`;
}

const Header = ({ section }) => html`
  <header class="top">
    <a class="brand" href="#/"><img src="/ui/icon.svg" alt="" width="22" height="22" /><span>Tenfold</span></a>
    <nav aria-label="Views">${NAV.map(([name, title]) => html`<a key=${name} href=${`#/${name}`} aria-current=${section === name ? "page" : undefined}>${title}</a>`)}</nav>
    <span class="grow"></span>
    <${Pulse} />
    <a class="docs" href="/docs">REST</a>
  </header>`;

function Pulse() {
  const { state } = useSubject(connection);
  const word = { connecting: "connecting", live: "live", broken: "no connection" }[state];
  return html`<span class=${`pulse ${state}`} role="status">${word}</span>`;
}

/** What one sees is old: since when, why, and when it is tried again. */
function Lost() {
  const { state, since, error, again } = useSubject(connection);
  if (state !== "broken") return null;
  const why = error?.status ? error.message : "The control service does not answer.";
  return html`<${Notice} tone="bad">${why} What is shown is from ${clock(since)} or before. ${again === null ? "Load the page again to go on." : "It is tried again all the time."}<//>`;
}

function View({ at: [section, name], asked, config }) {
  if (section === "") return html`<${Overview} config=${config} />`;
  if (section === "runs" && name === "compare") return html`<${ComparePage} asked=${asked} />`;
  if (section === "runs") return name ? html`<${RunPage} id=${name} config=${config} />` : html`<${RunsPage} config=${config} asked=${asked} />`;
  if (section === "clusters") return name ? html`<${ClusterPage} name=${name} />` : html`<${Clusters} />`;
  if (section === "sessions") return name ? html`<${SessionPage} id=${name} />` : html`<${SessionsPage} />`;
  if (section === "events") return html`<${EventsPage} />`;
  return html`<${Notice}>There is no view ${section}. <a href="#/">The overview</a> leads to all.<//>`;
}

/** All clusters; with a single one, that one. */
function Clusters() {
  const { data, error } = useData("/v1/clusters?limit=1000", 5, (event) => event.kind === "cluster");
  const all = data?.clusters ?? [];
  if (all.length === 1) return html`<${ClusterPage} name=${all[0].name} />`;
  return html`<h1 class="hidden">Tasks</h1><${Failure} error=${error} /><${Card} title="Clusters">
    ${data && !all.length ? html`<p class="quiet empty">No cluster is declared.</p>` : null}
    <ul class="plain">${all.slice(0, 200).map((cluster) => html`<li key=${cluster.name}><a href=${route("clusters", cluster.name)}>${cluster.name}</a></li>`)}</ul><//>`;
}

function Token({ given }) {
  const [text, write] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (text.trim()) given(text.trim());
  };
  return html`<form class="card token" onSubmit=${submit}>
    <h1>This control service asks for its token</h1>
    <p>It was started with <code>TENFOLD_TOKEN</code>. The token stays in this tab, and is forgotten when you close it.</p>
    <label class="field"><span>token</span><input id="token" type="password" autocomplete="off" value=${text} onInput=${(e) => write(e.target.value)} autofocus /></label>
    <div class="actions"><button type="submit" class="solid">Go on</button></div>
  </form>`;
}

render(html`<${App} />`, document.getElementById("app"));
