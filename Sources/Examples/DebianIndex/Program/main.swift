import DebianIndex

// A file of its own, since tests can import a library only.
await DebianIndexCommand.main()
