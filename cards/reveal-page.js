/** The page of a reveal link: opens it when asked to, and hides what it shows after a minute or when left. */
const SHOWN_MS = 60_000;

const at = (id) => document.getElementById(id);
const status = at('status');
const details = at('details');
const show = at('show');

// Out of the address bar and the history at once.
const token = location.hash.slice(1);
history.replaceState(null, '', location.pathname);
if (token === '') end('This link is not whole. Open it as you got it, or ask for a new one.');

show.addEventListener('click', async () => {
  show.disabled = true;
  say('Asking for the card…');
  try {
    const response = await fetch(location.pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
    });
    const answer = await response.json();
    if (response.ok) reveal(answer);
    else refuse(response, answer.error.message);
  } catch {
    show.disabled = false;
    say('There was no answer. Try again.');
  }
});

for (const button of document.querySelectorAll('[data-copies]')) {
  button.addEventListener('click', () => copy(button.dataset.copies));
}

function reveal({ pan, cvv, exp_month: month, exp_year: year, cardholder_name: name }) {
  at('number').textContent = pan.replace(/(.{4})(?=.)/g, '$1 ');
  at('expiry').textContent = `${month}/${year.slice(-2)}`;
  at('cvv').textContent = cvv;
  at('name').textContent = name ?? '';
  at('name').parentElement.hidden = name === null;
  show.hidden = true;
  details.hidden = false;
  say('Shown for a minute.');
  setTimeout(hide, SHOWN_MS);
  addEventListener('pagehide', hide);
  document.addEventListener('visibilitychange', () => document.hidden && hide());
}

function hide() {
  for (const id of ['number', 'expiry', 'cvv', 'name']) at(id).textContent = '';
  details.hidden = true;
  end('Hidden. To see the card again, ask for a new link.');
}

/** A link whose card was not answered for can be opened again; others can't. */
function refuse({ status: code, headers }, message) {
  if (code === 503 || (code === 429 && headers.has('retry-after'))) {
    show.disabled = false;
    say(message);
  } else end(message);
}

async function copy(id) {
  const text = at(id).textContent.replaceAll(' ', id === 'number' ? '' : ' ');
  try {
    await navigator.clipboard.writeText(text);
    say('Copied.');
  } catch {
    // A frame may not write to the clipboard unless the page around it allows it.
    getSelection().selectAllChildren(at(id));
    say('Selected: copy it with your keyboard.');
  }
}

function end(text) {
  show.hidden = true;
  say(text);
}

function say(text) {
  status.textContent = text;
}
