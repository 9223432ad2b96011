//! What is shown, what is fetched, and what the browser complains of.

use std::net::TcpListener;

use otel_webhook_server::page::{headers, page};
use serde_json::json;

use crate::{browser::Browser, sample};

/// Serves a page on an address of this machine, with the headers of the program.
fn serve(html: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("tokio wants it so");
    let address = listener.local_addr().expect("an address");
    let router = axum::Router::new().fallback(async move || (headers(), html.clone()));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            axum::serve(listener, router).await.expect("a server");
        });
    });
    format!("http://{address}/")
}

/// Uses everything that the page can do.
fn fetches_nothing_more(browser: &mut Browser, url: &str) {
    browser.set("text", "cart");
    for selector in ["th button", ".copy", "#copy-all", "[type=reset]"] {
        browser.click(selector);
    }
    assert_eq!(browser.complaints(), [""; 0]);
    // The icon is an empty `data:` address, so that no browser requests one.
    let fetched: Vec<_> = browser.requests().into_iter().filter(|url| !url.starts_with("data:")).collect();
    assert_eq!(fetched, [url]);
}

#[test]
fn a_file_fetches_nothing_and_the_browser_has_no_complaint() {
    let mut browser = Browser::start();
    let url = browser.open_file(&page(&sample::two_clusters()));
    fetches_nothing_more(&mut browser, &url);
}

#[test]
fn served_with_its_headers_it_fetches_nothing_and_the_browser_has_no_complaint() {
    let mut browser = Browser::start();
    let url = serve(page(&sample::two_clusters()));
    browser.visit(&url);
    fetches_nothing_more(&mut browser, &url);
}

#[test]
fn a_page_that_is_served_is_loaded_again_unless_it_is_in_use() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    assert_eq!(browser.evaluate("document.querySelector('#reload').hidden"), true, "a file stays as it is");
    browser.visit(&serve(page(&sample::two_clusters())));
    browser.set("text", "cart");
    assert_eq!(browser.evaluate("document.querySelector('#reload').hidden"), false);
    // `reload` is what the page calls each minute.
    for used in [
        "document.querySelector('[name=text]').focus()",
        "document.activeElement.blur(); getSelection().selectAllChildren(document.querySelector('h1'))",
        "getSelection().empty(); document.querySelector('#reload input').checked = false",
    ] {
        assert_eq!(browser.evaluate(&format!("{used}; reload()")), false, "{used}");
    }
    browser.load_by("document.querySelector('#reload input').checked = true; reload()");
    assert_eq!(browser.evaluate("document.querySelector('[name=text]').value"), "cart", "filters stay");
}

#[test]
fn what_the_policy_forbids_is_not_done_and_reported() {
    let html = page(&sample::two_clusters());
    let forbidden = "<script>document.title = 'changed'</script><p style='color: red'></p>\
                     <img src='http://127.0.0.1:9/x' onerror=\"document.title = 'changed'\">\
                     <form action='http://127.0.0.1:9/'></form></main>";
    let mut browser = Browser::open(&html.replace("</main>", forbidden));
    let complaints = browser.complaints().concat();
    for directive in ["script-src", "style-src", "img-src"] {
        assert!(complaints.contains(directive), "{directive} is not in {complaints}");
    }
    assert_eq!(browser.evaluate("document.title"), "otel-webhook: running pods and their agents");
    let parsed =
        browser.evaluate("try { document.body.innerHTML = '<b>'; 'parsed' } catch (error) { error.name }");
    assert_eq!(parsed, "TypeError", "text is never parsed as markup");
    let blocked = browser.blocked();
    assert_eq!(blocked, ["http://127.0.0.1:9/x"], "it was never sent");
}

#[test]
fn without_scripts_the_rows_are_a_table() {
    let mut browser = Browser::start();
    browser.send("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    browser.open_file(&page(&sample::two_clusters()));
    let names = browser.accessible();
    let has = |role: &str, name: &str| names.contains(&(role.to_owned(), name.to_owned()));
    assert!(has("rowheader", "Deployment/order"), "{names:?}");
    assert!(
        has("StaticText", "kubectl rollout restart deployment/cart -n shop --context production"),
        "{names:?}"
    );
    let controls = ["searchbox", "combobox", "button"];
    let dead = names.iter().filter(|(role, _)| controls.contains(&&**role));
    assert_eq!(dead.count(), 0, "nothing is offered that does not work: {names:?}");
    browser.open_file(&page(&[sample::large(300)]));
    let headers =
        browser.accessible().into_iter().filter(|(role, name)| role == "rowheader" && name != "large");
    assert_eq!(headers.count(), 300, "all rows are there, since no button would show them");
}

/// What takes more room than it has is scrolled, or wraps. The time is from the navigation to the first frame with all rows.
#[test]
fn five_thousand_rows_are_whole_at_three_widths() {
    let html = page(&[sample::large(5_000)]);
    let mut browser = Browser::start();
    for (width, height) in [(1500, 1050), (768, 1024), (360, 740)] {
        // The browser has nothing else to lay out.
        browser.visit("about:blank");
        browser.size(width, height);
        browser.open_file(&html);
        let frame =
            "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))";
        let shown = browser.evaluate(frame);
        println!("{width} pixels: 5,000 rows are shown after {shown} ms");
        assert_eq!(browser.texts("#shown"), ["200 of 5,000 rows shown"]);
        assert_eq!(browser.texts("#show-all"), ["Show all 5,000"]);
        browser.click("#show-all");
        assert_eq!(browser.texts("#shown"), ["5,000 of 5,000 rows shown"]);
        assert_eq!(browser.evaluate("document.querySelectorAll('#rows tbody tr').length"), 5_000);
        let cut = browser.list(
            "Array.from(document.querySelectorAll('main *')).filter((e) => {
                const {overflowX, textOverflow} = getComputedStyle(e);
                return (overflowX === 'hidden' || textOverflow === 'ellipsis') && e.scrollWidth > e.clientWidth + 1;
            }).slice(0, 3).map((e) => e.outerHTML.slice(0, 200))",
        );
        assert_eq!(cut, [""; 0], "at {width} pixels");
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(width as u64), "at {width} pixels the page is {wide} wide");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_cluster_with_nothing_to_show_is_shown() {
    let mut browser = Browser::open(&page(&[sample::cluster("empty", Vec::new())]));
    assert_eq!(browser.complaints(), [""; 0]);
    let text = browser.evaluate("document.body.innerText");
    assert!(text.as_str().expect("text").contains("No running pod opts in or has an agent."), "{text}");
}
