import JobQueue

// This is a separate file, because tests can only import a library.
await JobQueueCommand.main()
