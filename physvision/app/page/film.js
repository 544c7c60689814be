// The film: its frames as pictures, exact stepping, playing, and drawings over it.

const CACHED = 160, AHEAD = 10;

export class Film {
  constructor(canvas, onFrame) {
    this.canvas = canvas;
    this.onFrame = onFrame;
    this.frame = 0;
    this.size = { width: 16, height: 9 };
    this.times = [];
    this.pictures = new Map();
    this.drawings = [];
    this.playing = false;
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
  }

  // Sets the clip: its id, its size, and the times of its frames so far.
  set(id, size, times) {
    if (this.id !== id) { this.pictures.clear(); this.frame = 0; }
    this.id = id;
    this.size = size;
    this.times = times;
    this.draw();
  }

  get count() { return this.times.length; }

  picture(number) {
    if (number < 0 || number >= this.count) return null;
    let picture = this.pictures.get(number);
    if (!picture) {
      picture = new Image();
      picture.onload = () => number === this.frame && this.draw();
      picture.src = `/api/analyses/${this.id}/frames/${number}`;
      this.pictures.set(number, picture);
      if (this.pictures.size > CACHED) this.pictures.delete(this.pictures.keys().next().value);
    }
    return picture;
  }

  show(frame) {
    this.frame = Math.max(0, Math.min(this.count - 1, Math.round(frame)));
    for (let ahead = 1; ahead <= AHEAD && this.playing; ahead++) this.picture(this.frame + ahead);
    this.draw();
    this.onFrame(this.frame);
  }

  // Plays at the film's own speed, from the beginning again after its end.
  play(low, high) {
    this.playing = true;
    if (this.frame >= high || this.frame < low) this.show(low);
    const begin = performance.now() - 1000 * (this.times[this.frame] - this.times[low]);
    const tick = () => {
      if (!this.playing) return;
      const time = this.times[low] + (performance.now() - begin) / 1000;
      let frame = this.frame;
      while (frame < high && this.times[frame + 1] <= time) frame++;
      if (frame !== this.frame && (this.picture(frame)?.complete ?? true)) this.show(frame);
      if (this.frame >= high) { this.pause(); return; }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    this.onFrame(this.frame);
  }

  pause() {
    this.playing = false;
    this.onFrame(this.frame);
  }

  // Position in the film, px, of a pointer event.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.size.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  draw() {
    const { canvas } = this, ratio = Math.min(2, window.devicePixelRatio || 1);
    const width = canvas.parentElement.clientWidth;
    if (!width) return;
    const limit = Math.max(240, window.innerHeight * (window.innerWidth <= 900 ? 0.45 : 0.68));
    const shown = Math.min(width, limit * this.size.width / this.size.height);
    canvas.style.width = `${shown}px`;
    canvas.style.margin = "0 auto";
    canvas.width = Math.round(shown * ratio);
    canvas.height = Math.round(shown * ratio * this.size.height / this.size.width);
    canvas.style.height = `${shown * this.size.height / this.size.width}px`;
    const context = canvas.getContext("2d"), picture = this.picture(this.frame);
    context.fillStyle = "#1b2230";
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (picture?.complete && picture.naturalWidth) context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const scale = canvas.width / this.size.width;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    // Lines are as wide in each film: `pixel` is the size of a CSS pixel in pixels of the film.
    const pixel = ratio / scale;
    for (const drawing of this.drawings) { context.save(); drawing(context, this.frame, pixel); context.restore(); }
    context.setTransform(1, 0, 0, 1, 0, 0);
    this.onDraw?.(shown / this.size.width, (width - shown) / 2);
  }
}

export function polyline(context, points, style, width, dash = []) {
  context.strokeStyle = style;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.setLineDash(dash);
  context.beginPath();
  let pen = false;
  for (const [x, y] of points) {
    if (x === null || y === null) { pen = false; continue; }
    if (pen) context.lineTo(x, y); else context.moveTo(x, y);
    pen = true;
  }
  context.stroke();
  context.setLineDash([]);
}

export function ring(context, [x, y], radius, style, width) {
  if (x === null || y === null || x === undefined) return;
  context.strokeStyle = style;
  context.lineWidth = width;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}
