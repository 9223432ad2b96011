// A service that knows nothing of OpenTelemetry: for each request it writes a line to its log, and
// asks the next service, if there is one.
'use strict';

const http = require('http');
const log = require('pino')();

const { PORT, NEXT } = process.env;

function ask(next, answered) {
  if (!next) {
    return answered('');
  }
  http.get(next, (response) => {
    let body = '';
    response.on('data', (chunk) => (body += chunk));
    response.on('end', () => answered(` ${body}`));
  });
}

http
  .createServer((request, response) => {
    log.info(`nodejs was asked for ${request.url}`);
    // What own.js says, if NODE_OPTIONS has it.
    ask(NEXT, (more) => response.end(`nodejs ${globalThis.greeting ?? ''}${more}`));
  })
  .listen(Number(PORT), '127.0.0.1');
