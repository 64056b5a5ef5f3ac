"""The board: `streamlit run leaderboard/app.py`. Layout only; numbers are standings.py's, figures charts.py's."""

from __future__ import annotations

import streamlit as st

from leaderboard import matrix_page, standings_page, trial_page

st.set_page_config(page_title="Kernel Derby", page_icon="🏁", layout="wide")
st.navigation(
    [
        st.Page(standings_page.show, title="Standings", url_path="standings", default=True),
        st.Page(matrix_page.show, title="Tasks × methods", url_path="matrix"),
        st.Page(trial_page.show, title="Trial", url_path="trial"),
    ],
    position="top",
).run()
