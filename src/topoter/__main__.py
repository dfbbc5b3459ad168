"""`topoter`, also as `python -m topoter`: signals are answered before the libraries are there, which takes a moment."""

from topoter import interruption


def main() -> None:
    interruption.listen()
    try:
        from topoter.cli import main as run

        run()
    except KeyboardInterrupt:
        interruption.leave_at_once()


if __name__ == "__main__":
    main()
