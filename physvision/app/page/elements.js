// Elements of the page, always from text, never from markup.

export const $ = (id) => document.getElementById(id);

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "color") element.style.background = value;
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Code, bold text and the text of links of a paragraph in Markdown, as elements.
export function markdown(text) {
  const pieces = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]*\))/);
  return pieces.map((piece, index) => {
    if (index % 2 === 0) return piece;
    if (piece.startsWith("`")) return h("code", {}, piece.slice(1, -1));
    return piece.startsWith("**") ? h("b", {}, piece.slice(2, -2)) : piece.slice(1, piece.indexOf("]"));
  });
}

export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Makes a button switch something on and off.
export function toggle(button, change) {
  button.addEventListener("click", () => {
    const pressed = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", pressed);
    change(pressed);
  });
  return (pressed) => { button.setAttribute("aria-pressed", pressed); };
}
