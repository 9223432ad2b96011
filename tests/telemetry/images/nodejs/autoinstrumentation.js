// The file that injected pods require, as in the operator's image: it registers the agent.
'use strict';

require('@opentelemetry/auto-instrumentations-node/register');
