from __future__ import annotations


def sign_in(page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_pasted_token_signs_in_and_a_wrong_one_says_why(shop, token, tab):
    shown = tab(shop)
    page = shown.open("/")
    page.get_by_role("heading", name="Sign in").wait_for()
    assert shown.faults() == []
    page.get_by_text("paste a token that fleet token create NAME made.").wait_for()
    sign_in(page, "nonsense")
    page.get_by_role("alert").wait_for()
    sign_in(page, token)
    page.get_by_role("heading", name="Inbox").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    assert token not in shown.run("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    shown.wrong = [text for text in shown.wrong if "401" not in text]  # of the wrong one


def test_the_page_sets_no_cookie_and_asks_nobody_else(shop, token, tab):
    shown = tab(shop, token)
    asked = []
    shown.page.on("request", lambda request: asked.append(request.url))
    page = shown.open("/")
    page.get_by_text("Choose a licence").first.wait_for()
    assert shown.context.cookies() == []
    assert {url for url in asked if not url.startswith(shop.url)} == set()
