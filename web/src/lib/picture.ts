/**
 * How does a chart leave the page?  As SVG, with every colour and font written into it; as PNG, twice as fine as it is
 * shown.  Charts on a canvas are PNG alone.
 */

/** What the style sheet says of a mark, and a file of its own must say itself. */
const WRITTEN = [
  ...[
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "stroke-linecap",
    "stroke-opacity",
  ],
  ...["opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "visibility"],
] as const;
const FINER = 2;
const NAMESPACE = "http://www.w3.org/2000/svg";

/** The marks of a figure: its first labelled drawing that is not its table's. */
export function marksOf(figure: Element): SVGSVGElement | HTMLCanvasElement | undefined {
  const found = figure.querySelector('svg[role="img"], canvas[role]');
  return found instanceof SVGSVGElement || found instanceof HTMLCanvasElement ? found : undefined;
}

/** The drawing as a document of its own, on the page's paper. */
export function svgText(shown: SVGSVGElement, title: string): string {
  const copy = shown.cloneNode(true) as SVGSVGElement;
  const originals = [shown, ...shown.querySelectorAll("*")];
  for (const [place, element] of [copy, ...copy.querySelectorAll("*")].entries()) {
    const original = originals[place];
    if (original) write(element, getComputedStyle(original));
    element.removeAttribute("class");
    element.removeAttribute("tabindex");
  }
  const { width, height } = shown.getBoundingClientRect();
  copy.setAttribute("xmlns", NAMESPACE);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const paper = document.createElementNS(NAMESPACE, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  const name = document.createElementNS(NAMESPACE, "title");
  name.textContent = title;
  copy.prepend(name, paper);
  return new XMLSerializer().serializeToString(copy);
}

function write(element: Element, style: CSSStyleDeclaration): void {
  for (const name of WRITTEN) {
    const value = style.getPropertyValue(name);
    // Patterns are named inside the drawing: what the attribute says stays.
    if (value !== "" && !value.startsWith("url(")) element.setAttribute(name, value);
  }
}

export async function svgFile(shown: SVGSVGElement, title: string): Promise<Blob> {
  return new Blob([svgText(shown, title)], { type: "image/svg+xml" });
}

export async function pngFile(shown: SVGSVGElement | HTMLCanvasElement, title: string): Promise<Blob> {
  const box = shown.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(box.width * FINER);
  canvas.height = Math.round(box.height * FINER);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("the browser gives no canvas");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const layer of await layersOf(shown, title))
    context.drawImage(layer, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture could not be made")))),
  );
}

async function layersOf(
  shown: SVGSVGElement | HTMLCanvasElement,
  title: string,
): Promise<readonly CanvasImageSource[]> {
  // What stands out is drawn on canvases above the first.
  if (shown instanceof HTMLCanvasElement)
    return [...(shown.parentElement?.querySelectorAll("canvas") ?? [shown])];
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svgText(shown, title))}`;
  await image.decode();
  return [image];
}
