<?php
// Says what it was started with, and stays.
foreach (['PHP_INI_SCAN_DIR', 'AGENT_ENABLED', 'AGENT_FLAGS', 'OTEL_SERVICE_NAME'] as $name) {
    echo $name, '=', getenv($name), "\n";
}
echo 'precision=', ini_get('precision'), "\n";
echo 'agent=', defined('AGENT') ? AGENT : 'none', "\n";
while (true) {
    sleep(60);
}
