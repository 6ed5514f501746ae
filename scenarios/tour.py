"""A tour of kvsim: change the pool, the rate and the way of keeping KV, and see what it does to memory and latency.

marimo edit scenarios/tour.py                             sliders, in the browser (pip install "kvsim[notebook]")
marimo export html scenarios/tour.py -o tour.html         a page of what it shows at first
python scenarios/tour.py                                  the table alone, printed
"""

import marimo

__generated_with = "0.9.0"
app = marimo.App(width="medium", app_title="kvsim: a tour")


@app.cell
def _():
    import marimo as mo

    from kvsim.reporting.comparison import comparison_table
    from kvsim.reporting.exports.markdown import escaped, table
    from kvsim.reporting.figures.memory.side_by_side import memory_side_by_side
    from kvsim.reporting.finding import finding, legend, shared, sources
    from kvsim.reporting.ttft import ttft_line
    from kvsim.scenario import load_all
    from kvsim.study import compare

    return (
        comparison_table,
        compare,
        escaped,
        finding,
        legend,
        load_all,
        memory_side_by_side,
        mo,
        shared,
        sources,
        table,
        ttft_line,
    )


@app.cell
def _(mo):
    question = mo.md(
        """
        # Where does the KV memory go?

        An LLM server keeps the keys and values of every token that it has read or written, the *KV*, in a *pool* of GPU
        memory. When the pool is full, requests wait, or lose their KV and compute it again. How the pool is shared out
        decides how many run at once.

        Below, conversations recorded at Azure are served by Llama-3.1-8B on one RTX 4090. Move a slider, and the same
        requests are simulated again.
        """
    )
    question
    return (question,)


@app.cell
def _(load_all, mo):
    file = mo.notebook_dir() / "azure-conversation.yaml"
    ways = [variant.label for variant in load_all(file)]
    pool = mo.ui.slider(start=12_288, stop=98_304, step=4_096, value=40_960, label="pool, tokens", show_value=True)
    rate = mo.ui.slider(start=0.5, stop=5.0, step=0.25, value=2.5, label="requests a second", show_value=True)
    chosen = mo.ui.multiselect(options=ways, value=["contiguous", "paged"], label="ways of keeping KV")
    controls = mo.vstack([mo.hstack([pool, rate], justify="start"), chosen])
    controls
    return chosen, file, pool, rate


@app.cell
def _(chosen, compare, file, load_all, mo, pool, rate):
    mo.stop(not chosen.value, mo.md("Choose at least one way of keeping KV."))
    changes = [f"pool.tokens={pool.value}", f"workload.rate={rate.value}/s"]
    variants = [(one.label, one) for one in load_all(file, changes) if one.label in chosen.value]
    results = compare(variants)
    return (results,)


@app.cell
def _(comparison_table, escaped, finding, legend, results, table, ttft_line):
    said = [escaped(line) for result in results for line in [f"{result.name}: {text}" for text in ttft_line(result)]]
    summary = "\n".join(
        [
            f"**{escaped(finding(results))}**",
            "",
            "".join(table(comparison_table(results), [result.name for result in results])),
            *(f"- {line}" for line in [*said, *map(escaped, legend(results))]),
        ]
    )
    return (summary,)


@app.cell
def _(memory_side_by_side, mo, results, summary):
    figure = memory_side_by_side(results)
    if mo.app_meta().mode == "script":
        print(summary)
    shown = mo.vstack([mo.md(summary), figure])
    shown
    return (figure,)


@app.cell
def _(escaped, mo, results, shared, sources):
    gaps = shared([result.not_modelled for result in results], results)
    told = shared([sources(result) for result in results], results)
    foot = "\n".join(
        [
            "**Where the numbers come from**",
            "",
            *(f"- {escaped(line)}" for line in told),
            "",
            "**Not modelled**",
            "",
            *(f"- {escaped(line)}" for line in gaps),
        ]
    )
    mo.md(foot)
    return (foot,)


if __name__ == "__main__":
    app.run()
