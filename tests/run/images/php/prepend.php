<?php
// Stands for an agent: PHP runs it before the application.
define('AGENT', 'loaded by ' . php_sapi_name() . ' from ' . __DIR__);
