// Requests to the server of this page, and nowhere else.

const HEADERS = { "X-Physvision": "1" };

async function answer(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error || `the server answered ${response.status}`);
  return body;
}

export async function post(path, body) {
  const text = typeof body === "string" ? body : JSON.stringify(body ?? {});
  return answer(await fetch(path, { method: "POST", headers: HEADERS, body: text }));
}

// Sends a file; `progress` hears the fraction that is sent.
export function upload(path, file, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("X-Physvision", "1");
    request.setRequestHeader("X-Name", encodeURIComponent(file.name || "clip"));
    request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.onerror = () => reject(new Error("the upload was interrupted; the file may be too large, or no film"));
    request.onload = () => {
      let body = {};
      try { body = JSON.parse(request.responseText); } catch { /* an answer without a body */ }
      if (request.status >= 400) reject(new Error(body.error || `the server answered ${request.status}`));
      else resolve(body);
    };
    request.send(file);
  });
}

export async function first() {
  return (await answer(await fetch("/api/first"))).id;
}

// Follows the state of an analysis; `change` hears the keys that are new.
export function follow(id, change, lost) {
  const source = new EventSource(`/api/analyses/${id}/events`);
  source.onmessage = (event) => change(JSON.parse(event.data));
  source.onerror = () => source.readyState === EventSource.CLOSED && lost();
  return () => source.close();
}
