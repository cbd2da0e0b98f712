/**
 * Where does every device stand on the map?  Boxes within boxes (node, scale-up domain, leaf, spine), each a grid of
 * the next smaller; a place is a sum over a few levels, for 8 devices as for 100,000.
 *
 * Lengths are in units of one chip; what a unit is in px is the viewport's concern.
 */

export interface Nest {
  readonly name: string;
  /** Consecutive devices that one box holds. */
  readonly size: number;
}

export interface BoxLevel extends Nest {
  /** Boxes of this level on the whole map. */
  readonly count: number;
  readonly columns: number;
  readonly childSize: number;
  readonly childWidth: number;
  readonly childHeight: number;
  readonly gap: number;
  readonly pad: number;
  /** Room for the name above the children. */
  readonly head: number;
  readonly width: number;
  readonly height: number;
}

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface MapLayout {
  readonly devices: number;
  /** Innermost first; the last one holds everything. */
  readonly levels: readonly BoxLevel[];
  readonly width: number;
  readonly height: number;
}

const CHIP_GAP = 0.14;

/** Sizes that nest: growing, each a multiple of the one before, the last one all devices; of equal boxes the first. */
export function nestingOf(boxes: readonly Nest[], devices: number): readonly Nest[] {
  const nests: Nest[] = [];
  const capped = boxes.map((each) => ({ ...each, size: Math.min(each.size, devices) }));
  for (const box of capped.filter((each) => each.size > 1).sort((a, b) => a.size - b.size)) {
    const last = nests.at(-1);
    if (last?.size === box.size) continue;
    // A block that is cut through by its neighbour's border cannot be drawn as a box.
    if (box.size % (last?.size ?? 1) === 0 || box.size === devices) nests.push(box);
  }
  if (nests.at(-1)?.size !== devices) nests.push({ name: "cluster", size: devices });
  return nests;
}

/** The grid of `count` cells whose shape is nearest to `aspect`, with few cells left empty. */
export function columnsFor(
  count: number,
  cellWidth: number,
  cellHeight: number,
  gap: number,
  aspect: number,
): number {
  let [best, least] = [1, Number.POSITIVE_INFINITY];
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const width = columns * (cellWidth + gap) - gap;
    const height = rows * (cellHeight + gap) - gap;
    const cost = Math.abs(Math.log(width / height / aspect)) + (8 * (rows * columns - count)) / count;
    if (cost < least - 1e-9) [best, least] = [columns, cost];
  }
  return best;
}

/** The map of `devices` in nested boxes, about as wide as `aspect` times its height. */
export function layoutOf(boxes: readonly Nest[], devices: number, aspect: number): MapLayout {
  const levels: BoxLevel[] = [];
  let [childSize, childWidth, childHeight] = [1, 1, 1];
  for (const [depth, nest] of nestingOf(boxes, devices).entries()) {
    const gap = depth === 0 ? CHIP_GAP : 0.3 * depth;
    const [pad, head] = [0.16 + 0.14 * depth, 0.5 + 0.45 * depth];
    const children = Math.ceil(nest.size / childSize);
    const columns = columnsFor(children, childWidth, childHeight, gap, depth === 0 ? 2 : aspect);
    const rows = Math.ceil(children / columns);
    const width = 2 * pad + columns * (childWidth + gap) - gap;
    const height = 2 * pad + head + rows * (childHeight + gap) - gap;
    const count = Math.ceil(devices / nest.size);
    levels.push({
      ...nest,
      count,
      columns,
      childSize,
      childWidth,
      childHeight,
      gap,
      pad,
      head,
      width,
      height,
    });
    [childSize, childWidth, childHeight] = [nest.size, width, height];
  }
  return { devices, levels, width: childWidth, height: childHeight };
}

/** Upper left corner of a device (`depth` 0) or of the box of level `depth - 1` that begins with it. */
function corner(layout: MapLayout, device: number, depth: number): { x: number; y: number } {
  let [x, y, rest] = [0, 0, device];
  for (let above = layout.levels.length - 1; above >= depth; above--) {
    const level = layout.levels[above] as BoxLevel;
    const child = Math.floor(rest / level.childSize);
    rest %= level.childSize;
    x += level.pad + (child % level.columns) * (level.childWidth + level.gap);
    y += level.pad + level.head + Math.floor(child / level.columns) * (level.childHeight + level.gap);
  }
  return { x, y };
}

export function chipCorner(layout: MapLayout, device: number): { x: number; y: number } {
  return corner(layout, device, 0);
}

/** Box `index` of a level; the last one may hold fewer children, and is drawn so. */
export function boxAt(layout: MapLayout, depth: number, index: number): Rect {
  const level = layout.levels[depth] as BoxLevel;
  const first = index * level.size;
  const children = Math.ceil(Math.min(level.size, layout.devices - first) / level.childSize);
  const columns = Math.min(children, level.columns);
  const rows = Math.ceil(children / level.columns);
  return {
    ...corner(layout, first, depth + 1),
    width: 2 * level.pad + columns * (level.childWidth + level.gap) - level.gap,
    height: 2 * level.pad + level.head + rows * (level.childHeight + level.gap) - level.gap,
  };
}

/** The device at a point, or undefined between the chips. */
export function deviceAt(layout: MapLayout, x: number, y: number): number | undefined {
  let [left, top, first] = [x, y, 0];
  for (let depth = layout.levels.length - 1; depth >= 0; depth--) {
    const level = layout.levels[depth] as BoxLevel;
    const [inX, inY] = [left - level.pad, top - level.pad - level.head];
    const [pitchX, pitchY] = [level.childWidth + level.gap, level.childHeight + level.gap];
    const [column, row] = [Math.floor(inX / pitchX), Math.floor(inY / pitchY)];
    if (column < 0 || row < 0 || column >= level.columns) return undefined;
    [left, top] = [inX - column * pitchX, inY - row * pitchY];
    if (left > level.childWidth || top > level.childHeight) return undefined;
    const child = row * level.columns + column;
    if (child * level.childSize >= level.size) return undefined;
    first += child * level.childSize;
  }
  return first < layout.devices ? first : undefined;
}

export type Direction = "left" | "right" | "up" | "down";
const STEPS: Record<Direction, readonly [number, number]> = {
  left: [-1, 0],
  right: [1, 0],
  up: [0, -1],
  down: [0, 1],
};
/** Sideways offsets to try: blocks below may stand shifted, so that a straight line runs between their chips. */
const ASIDE = [0, 0.45, -0.45, 0.9, -0.9];

/** The next device in a direction, over the gaps; the same device at the border. */
export function neighbour(layout: MapLayout, device: number, direction: Direction): number {
  const [dx, dy] = STEPS[direction];
  const { x, y } = chipCorner(layout, device);
  const reach = Math.max(layout.width, layout.height);
  for (let far = 0.6; far < reach; far += 0.3) {
    for (const aside of ASIDE) {
      const found = deviceAt(layout, x + 0.5 + dx * far + dy * aside, y + 0.5 + dy * far + dx * aside);
      if (found !== undefined && found !== device) return found;
    }
  }
  return device;
}
