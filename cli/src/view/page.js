"use strict";
/* Asks for one frame after the other: the newest one that is newer than the last. A page that is slow misses some, and
   never holds up the stream. An answer has the length of the result in four bytes, the result (a line of --json-lines), and
   the picture with the result drawn in, as JPEG. */

const picture = document.getElementById("picture");
const state = document.getElementById("state");
const found = document.getElementById("found");
let last = 0;

/* Labels come from a model's file: they are text and nothing else. */
function show(result) {
  const latency = result.latency_us === null ? "" : `, ${(result.latency_us / 1000).toFixed(1)} ms`;
  state.textContent = `frame ${result.frame} of ${result.source}${latency}`;
  const things = result.boxes || result.top || result.classes || [];
  const lines = things.map((thing) => {
    const line = document.createElement("li");
    const name = thing.label || `class ${thing.index}`;
    const part = thing.score === undefined ? thing.share : thing.score;
    line.textContent = `${part.toFixed(2)} ${name}`;
    return line;
  });
  found.replaceChildren(...lines);
}

async function next() {
  const answer = await fetch(`frame?after=${last}`, { cache: "no-store" });
  if (answer.status === 204) {
    return; /* no new frame for a while */
  }
  if (!answer.ok) {
    throw new Error(`status ${answer.status}`);
  }
  const bytes = await answer.arrayBuffer();
  const length = new DataView(bytes).getUint32(0);
  const result = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const jpeg = new Blob([new Uint8Array(bytes, 4 + length)], { type: "image/jpeg" });
  const drawn = await createImageBitmap(jpeg);
  picture.width = drawn.width;
  picture.height = drawn.height;
  picture.getContext("2d").drawImage(drawn, 0, 0);
  drawn.close();
  last = result.frame;
  show(result);
}

async function follow() {
  try {
    for (;;) {
      await next();
    }
  } catch (error) {
    state.textContent = `the stream has ended (${error.message})`;
  }
}

follow();
