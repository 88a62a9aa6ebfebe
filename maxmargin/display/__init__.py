"""What people look at, as HTML: markup, small figures as SVG, and pages in one file."""
