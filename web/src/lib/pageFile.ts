/** A screen as one HTML file to send around: its heading, what was asked, its charts as they are drawn, its tables. */

import { marksOf, svgText } from "./picture";

const STYLE = `body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem;color:#16191f;background:#fff}
figure{margin:1.5rem 0}figcaption p,caption,.asked{color:#4a5261}svg{max-width:100%;height:auto}
table{border-collapse:collapse;width:100%}caption{text-align:left;padding:.4rem 0}
th,td{border-top:1px solid #dde1e7;padding:.3rem .6rem;text-align:left}`;

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

/** `asked`: what the screen was asked, name and value. */
export function pageFile(main: Element, title: string, asked: readonly (readonly [string, string])[]): Blob {
  const figures = [...main.querySelectorAll("figure")].map((figure) => {
    const head = figure.querySelector("h2")?.textContent ?? "";
    const sentence = figure.querySelector("figcaption p")?.textContent ?? "";
    const marks = marksOf(figure);
    const drawing = marks instanceof SVGSVGElement ? svgText(marks, head) : "";
    return `<figure><figcaption><h2>${escaped(head)}</h2><p>${escaped(sentence)}</p></figcaption>${drawing}</figure>`;
  });
  const tables = [...main.querySelectorAll("table")].filter((each) => !each.closest("figure")).map(tableText);
  const facts = asked.map(([name, value]) => `${escaped(name)}: <b>${escaped(value)}</b>`).join(" · ");
  const text = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(title)}</title><style>${STYLE}</style><body><h1>${escaped(title)}</h1><p class="asked">${facts}</p>${figures.join("")}${tables.join("")}</body></html>`;
  return new Blob([text], { type: "text/html" });
}

/** Texts alone: links and buttons lead nowhere in a file. */
function tableText(table: HTMLTableElement): string {
  const rows = [...table.rows].map((row) => {
    const cells = [...row.cells].map((cell) => {
      const tag = cell.tagName === "TH" ? "th" : "td";
      return `<${tag}>${escaped(cell.textContent ?? "")}</${tag}>`;
    });
    return `<tr>${cells.join("")}</tr>`;
  });
  return `<table><caption>${escaped(table.caption?.textContent ?? "")}</caption>${rows.join("")}</table>`;
}
