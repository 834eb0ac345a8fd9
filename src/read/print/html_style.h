/*
 * How a page looks.
 */
#ifndef BP_PRINT_HTML_STYLE_H
#define BP_PRINT_HTML_STYLE_H

/* No element has a style of its own, so that the policy can name this text alone. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--page:#fff;--card:#f6f8fa;"
    "--edge:#d0d7de;--bar:#0969da;--bad:#b3261e;--warn:#8a5a00;--soft:#ddf4ff}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa4af;--page:#0d1117;"
    "--card:#161b22;--edge:#30363d;--bar:#58a6ff;--bad:#ff8a80;--warn:#e3b341;--soft:#12304f}}"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:64rem;padding:1rem;color:var(--ink);"
    "background:var(--page);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}"
    "h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px "
    "solid var(--edge)}a{color:var(--bar)}nav ul{display:flex;flex-wrap:wrap;gap:.2rem "
    "1rem;padding:0;"
    "list-style:none}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:0}"
    "dt{color:var(--dim)}dd{margin:0}.findings{list-style:none;padding:0}.findings li{margin:.4rem "
    "0;"
    "padding:.5rem .8rem;border-left:.3rem solid var(--edge);background:var(--card)}"
    ".findings .critical{border-color:var(--bad)}.findings .warning{border-color:var(--warn)}"
    ".severity{font-weight:600}.critical .severity,.error,.fatal{color:var(--bad)}"
    ".warning .severity,.warn{color:var(--warn)}.entry,.trace,.debug{color:var(--dim)}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem;"
    "border-bottom:1px solid "
    "var(--edge);vertical-align:top}thead th,.scroll th,.scroll td{"
    "overflow-wrap:normal}.number{text-align:right;"
    "font-variant-numeric:tabular-nums}.scroll{overflow:auto;max-height:32rem;border:1px solid "
    "var(--edge)}pre,code,.log{font:.85rem/1.45 ui-monospace,monospace}pre{margin:0;padding:.6rem;"
    "white-space:pre-wrap}figure{margin:.5rem 0}figcaption{color:var(--dim)}"
    "svg:where([viewBox]){width:100%;height:auto}svg{display:block}svg text{font:11px "
    "system-ui,sans-serif;fill:var(--dim)}.end{"
    "text-anchor:end}.line{fill:none;stroke:var(--bar);stroke-width:1.5}.grid{stroke:var(--edge);"
    "fill:none}.trigger{stroke:var(--bad);stroke-dasharray:4 3;fill:none}rect{fill:var(--bar)}"
    ".bars{height:1.5rem;width:15rem;max-width:100%}.cpu{width:8rem;height:.8rem}"
    ".at-end{display:flex;flex-direction:column-reverse}.frames{margin:0;padding-left:2rem}"
    ".waits{max-width:24rem}.waits text{font-size:13px;fill:var(--ink)}.waits "
    ".entry{font-size:11px;"
    "fill:var(--dim)}.waits rect{fill:var(--card);stroke:var(--edge)}.waits "
    ".cause{stroke:var(--bad);"
    "stroke-width:2.5}.waits path{fill:none;stroke:var(--dim)}.waits .head{fill:var(--dim)}"
    ".flame text{font:12px ui-monospace,monospace;fill:var(--ink)}.flame "
    "rect{fill:var(--soft);stroke:var(--page);stroke-width:.6}.flame .hot "
    "rect{fill:var(--bar)}.flame .hot "
    "text{fill:var(--page)}.flame .rest rect{fill:var(--edge)}"
    "summary{cursor:pointer;padding:.2rem 0}img{max-width:100%;border:1px solid var(--edge)}"
    "@media(max-width:40rem){.cpu{width:3rem}.flame .thin text{display:none}svg "
    "text{font-size:20px}dl{grid-template-columns:"
    "fit-content(40%) 1fr}}"
    "@media print{.scroll{max-height:none;overflow:visible}nav{display:none}}";

#endif
