//! A headless Chromium with one page, driven by the DevTools protocol.
//!
//! The protocol is JSON over a pipe, each message ended by a zero byte: no port is open, and
//! no client is needed. <https://chromedevtools.github.io/devtools-protocol/> has its methods.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use otel_webhook_testkit::{objects::items, until::LIMIT};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Chromium reads the protocol from descriptor 3 and writes it to 4. A shell moves them.
const MOVED: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// Pages of the tests are the only ones that are opened, so that no sandbox is needed: it takes root or user
/// namespaces, which containers often lack.
const FLAGS: [&str; 6] = [
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--hide-scrollbars",
];

/// A file that `tests/page/prepare` has made.
pub fn prepared(name: &str) -> PathBuf {
    let home = env::var_os("OTEL_WEBHOOK_PAGE").expect("`make page` sets OTEL_WEBHOOK_PAGE");
    PathBuf::from(home).join(name)
}

/// The browser and its page.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    sent: u64,
    events: Vec<Value>,
    folder: TempDir,
}

impl Browser {
    /// Starts it with an empty page.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = Command::new("sh")
            .args(["-c", MOVED])
            .arg(prepared("chromium"))
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        thread::spawn(move || read(output, &sender));
        let events = Vec::new();
        let mut browser = Self { process, input, messages, session: None, sent: 0, events, folder };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let target = self.send("Target.createTarget", &json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.send("Target.attachToTarget", &target);
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "Audits", "Accessibility"] {
            self.send(&format!("{domain}.enable"), &json!({}));
        }
        self.size(1500, 900);
    }

    /// Sets the size of the window.
    pub fn size(&mut self, width: usize, height: usize) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.send("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Starts it and opens a page as a file.
    pub fn open(html: &str) -> Self {
        let mut browser = Self::start();
        browser.open_file(html);
        browser
    }

    /// Opens a page as a file, and returns its address.
    pub fn open_file(&mut self, html: &str) -> String {
        let file = self.folder.path().join("page.html");
        fs::write(&file, html).expect("a file");
        let url = format!("file://{}", file.display());
        self.visit(&url);
        url
    }

    /// Goes to an address and waits until all is loaded.
    pub fn visit(&mut self, url: &str) {
        self.events.clear();
        let gone = self.send("Page.navigate", &json!({"url": url}));
        assert_eq!(gone["errorText"], Value::Null, "{url}");
        self.wait_until_loaded();
    }

    /// Runs JavaScript that loads another page, or the same one again, and waits until all is loaded.
    pub fn load_by(&mut self, script: &str) {
        self.events.clear();
        self.evaluate(script);
        self.wait_until_loaded();
    }

    fn wait_until_loaded(&mut self) {
        while self.of("Page.loadEventFired").next().is_none() {
            self.receive();
        }
    }

    /// Calls a method and returns its result.
    pub fn send(&mut self, method: &str, params: &Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.input, "{message}\0").expect("Chromium reads");
        loop {
            if let Some(mut answer) = self.receive() {
                assert_eq!(answer["error"], Value::Null, "{method}");
                return answer["result"].take();
            }
        }
    }

    /// Returns the next message if it is the answer to the last call; keeps it if it is an event.
    fn receive(&mut self) -> Option<Value> {
        let message = self.messages.recv_timeout(LIMIT).expect("Chromium answers");
        if message["id"] == json!(self.sent) {
            return Some(message);
        }
        self.events.push(message);
        None
    }

    /// Makes the page as a reader wants it: `light` or `dark`, on the `screen` or in `print`.
    pub fn media(&mut self, media: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.send("Emulation.setEmulatedMedia", &json!({"media": media, "features": features}));
    }

    /// Returns role and name of all that a screen reader reads: what is visible alone.
    pub fn accessible(&mut self) -> Vec<(String, String)> {
        let tree = self.send("Accessibility.getFullAXTree", &json!({}));
        let text = |node: &Value, field: &str| node[field]["value"].as_str().unwrap_or_default().to_owned();
        let seen = items(&tree["nodes"]).filter(|node| node["ignored"] == json!(false));
        seen.map(|node| (text(node, "role"), text(node, "name"))).collect()
    }

    /// Runs JavaScript in the page, as if a user had just clicked, and returns its value.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let params = json!({
            "expression": script, "returnByValue": true, "awaitPromise": true, "userGesture": true,
        });
        let mut done = self.send("Runtime.evaluate", &params);
        assert_eq!(done["exceptionDetails"], Value::Null, "{script}");
        done["result"]["value"].take()
    }

    /// Returns a list of texts by JavaScript.
    pub fn list(&mut self, script: &str) -> Vec<String> {
        let found = self.evaluate(script);
        serde_json::from_value(found).expect("a list of texts")
    }

    /// Returns the text of each element of a selector.
    pub fn texts(&mut self, selector: &str) -> Vec<String> {
        let selector = json!(selector);
        self.list(&format!("Array.from(document.querySelectorAll({selector}), (found) => found.textContent)"))
    }

    /// Sets a control of the filters, as a user does.
    pub fn set(&mut self, name: &str, value: &str) {
        self.evaluate(&format!(
            "{{ const control = document.querySelector('[name={name}]');
                control.value = {};
                control.dispatchEvent(new Event('input', {{bubbles: true}})); }}",
            json!(value)
        ));
    }

    /// Clicks an element.
    pub fn click(&mut self, selector: &str) {
        self.evaluate(&format!("document.querySelector({}).click()", json!(selector)));
    }

    /// Presses and releases a key, such as `Tab`.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            other => panic!("{other} has no code here"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.send("Input.dispatchKeyEvent", &params);
        }
    }

    fn of<'b>(&'b self, method: &str) -> impl Iterator<Item = &'b Value> {
        self.events.iter().filter(move |event| event["method"] == json!(method)).map(|event| &event["params"])
    }

    /// Returns what the page has requested since it was visited.
    pub fn requests(&self) -> Vec<&str> {
        self.of("Network.requestWillBeSent").filter_map(|event| event["request"]["url"].as_str()).collect()
    }

    /// Returns what it has requested and the policy has stopped.
    pub fn blocked(&self) -> Vec<&str> {
        let failed = self.of("Network.loadingFailed").filter(|event| event["blockedReason"] == json!("csp"));
        let of = |failed: &'_ Value| {
            let request = |event: &&Value| event["requestId"] == failed["requestId"];
            self.of("Network.requestWillBeSent").find(request)?["request"]["url"].as_str()
        };
        failed.filter_map(of).collect()
    }

    /// Returns all lines of the console, exceptions, violations of the policy and other issues since then.
    pub fn complaints(&mut self) -> Vec<String> {
        // All before it has arrived with its answer.
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))");
        let kinds =
            ["Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Audits.issueAdded"];
        kinds.iter().flat_map(|kind| self.of(kind)).map(ToString::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read(mut output: impl BufRead, messages: &Sender<Value>) {
    let mut message = Vec::new();
    while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
        message.pop();
        let read = serde_json::from_slice(&message).expect("JSON");
        if messages.send(read).is_err() {
            return;
        }
        message.clear();
    }
}
