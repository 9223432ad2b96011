// What the service's own NODE_OPTIONS requires.
'use strict';

globalThis.greeting = 'by its own NODE_OPTIONS';
