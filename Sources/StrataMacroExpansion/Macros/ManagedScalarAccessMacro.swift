/// `@ManagedScalarAccess`: the functions by which typed accessors read and write a value in the words of a row.
///
/// Only the framework itself uses it, on extensions of the types of attributes. The text is the same for all of them.
enum ManagedScalarAccessMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        guard request.role == "member" else {
            let text = "@ManagedScalarAccess cannot be expanded as '\(request.role)'."
            return Expansion(diagnostics: [Diagnostic(text, at: 0..<0)])
        }
        return Expansion(source: functions)
    }

    private static let functions = """
        /// The value; zero, or what is empty, if there is none.
        @inline(__always)
        public static func managedRead(_ object: NSManagedObject, _ property: borrowing AnyManagedProperty) -> Self {
            read(object, property)
        }

        /// Sets the value.
        @inline(__always)
        public static func managedWrite(
            _ value: consuming Self,
            _ object: NSManagedObject,
            _ property: borrowing AnyManagedProperty
        ) {
            write(value, to: object, property: property)
        }

        /// The value, or nil.
        @inline(__always)
        public static func managedReadOptional(
            _ object: NSManagedObject,
            _ property: borrowing AnyManagedProperty
        ) -> Self? {
            readOptional(object, property)
        }

        /// Sets the value, or removes it.
        @inline(__always)
        public static func managedWriteOptional(
            _ value: consuming Self?,
            _ object: NSManagedObject,
            _ property: borrowing AnyManagedProperty
        ) {
            writeOptional(value, to: object, property: property)
        }

        /// The value, if a glance finds one that is not null.
        @inline(__always)
        public static func managedGlance(
            _ link: Unmanaged<GlancedObject>,
            _ property: borrowing AnyManagedProperty
        ) -> Self? {
            glance(at: link, property)
        }

        /// The value, or nil, if a glance finds one of them.
        @inline(__always)
        public static func managedGlanceOptional(
            _ link: Unmanaged<GlancedObject>,
            _ property: borrowing AnyManagedProperty
        ) -> Self?? {
            glanceOptional(at: link, property)
        }

        /// Sets the value, or removes it, if a glance can do that.
        @inline(__always)
        public static func managedGlanceWrite(
            _ value: Self?,
            _ link: Unmanaged<GlancedObject>,
            _ property: borrowing AnyManagedProperty
        ) -> Bool {
            glanceWrite(value, at: link, property)
        }
        """
}
