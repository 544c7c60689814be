// Points over the film that are dragged by a pointer or moved by arrow keys: ruler, axes, crop.

import { h } from "./elements.js";

export class Handle {
  // `move` hears the new position, px of the film.
  constructor(film, label, color, move) {
    this.film = film;
    this.label = label;
    this.move = move;
    this.position = [0, 0];
    this.button = h("button", { class: "handle", type: "button" });
    this.button.style.setProperty("--handle", color);
    this.button.addEventListener("pointerdown", (event) => {
      this.button.setPointerCapture(event.pointerId);
      this.dragging = true;
    });
    this.button.addEventListener("pointermove", (event) => this.dragging && this.to(...film.at(event)));
    this.button.addEventListener("pointerup", () => { this.dragging = false; });
    this.button.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 10 : 1, [x, y] = this.position;
      const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
      const by = moves[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      this.to(x + by[0], y + by[1]);
    });
    film.canvas.parentElement.append(this.button);
  }

  to(x, y) {
    const { width, height } = this.film.size;
    this.position = [Math.max(0, Math.min(width, x)), Math.max(0, Math.min(height, y))];
    this.move(this.position);
    this.film.draw();
  }

  place(scale, left) {
    const [x, y] = this.position;
    this.button.style.left = `${left + scale * x}px`;
    this.button.style.top = `${scale * y}px`;
    this.button.setAttribute("aria-label", `${this.label}: ${Math.round(x)}, ${Math.round(y)} pixels; arrow keys move it`);
  }

  set hidden(hidden) { this.button.hidden = hidden; }
}

// Handles that belong together, with a drawing of them.
export class Tool {
  constructor(film, labels, color, draw, changed = () => {}) {
    this.film = film;
    this.active = false;
    this.points = null;
    this.handles = labels.map((label, index) => new Handle(film, label, color, (position) => {
      this.points[index] = position;
      changed(index);
    }));
    this.handles.forEach((handle) => { handle.hidden = true; });
    film.drawings.push((context, frame, pixel) => this.points && this.active && draw(context, this.points, pixel));
  }

  // Shows the tool, at `points` the first time.
  show(active, points) {
    this.active = active;
    this.points ??= points;
    this.set(this.points);
  }

  set(points) {
    this.points = points;
    this.handles.forEach((handle, index) => {
      handle.hidden = !this.active;
      if (points) handle.position = points[index];
    });
    this.film.draw();
  }

  place(scale, left) { this.handles.forEach((handle) => handle.place(scale, left)); }
}
