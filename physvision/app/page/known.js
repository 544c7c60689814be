// Known values with their units, which the server lists; requests carry SI units.

import { h } from "./elements.js";

// Number of an input, null where it is empty; commas are taken as points.
export function decimal(input) {
  const text = input.value.trim().replace(",", ".");
  return text === "" || !Number.isFinite(Number(text)) ? null : Number(text);
}

export class KnownValues {
  constructor(container) {
    this.container = container;
    this.rows = [];
  }

  // Offers the known values, { name: { unit: SI units in it } }; values that were typed stay.
  offer(units) {
    if (this.rows.length) return;
    this.rows = Object.entries(units).filter(([name]) => name !== "scale").map(([name, factors]) => this.make(name, factors));
    this.container.append(...this.rows.map((row) => row.element));
  }

  make(name, units) {
    const value = h("input", { type: "number", step: "any", inputmode: "decimal", "aria-label": name, placeholder: name === "gravity" ? "9.81" : "" });
    const std = h("input", { type: "number", step: "any", min: "0", inputmode: "decimal", "aria-label": `uncertainty of ${name}`, placeholder: "±" });
    const unit = h("select", { "aria-label": `unit of ${name}` }, ...Object.keys(units).map((text) => h("option", {}, text)));
    return { name, units, value, std, unit, element: h("div", { class: "known" }, h("span", {}, name), value, std, unit) };
  }

  show(names) {
    for (const row of this.rows) row.element.hidden = !names.includes(row.name);
  }

  // Values and their standard deviations by name, of what is shown and filled in.
  values() {
    const values = {};
    for (const row of this.rows) {
      const number = decimal(row.value);
      if (row.element.hidden || number === null) continue;
      const factor = row.units[row.unit.value];
      values[row.name] = [number * factor, (decimal(row.std) ?? 0) * factor];
    }
    return values;
  }
}
