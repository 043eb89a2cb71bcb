import CStrataSQLite
import Foundation

/// A function of SQL, written in Swift.
///
/// The body runs on the thread that steps the statement, between two rows, and may run on several connections at once.
package struct ScalarFunction: Sendable {
    package let name: String
    /// The exact number of arguments, or `nil` for any number.
    package let argumentCount: Int?
    /// Whether equal arguments always give an equal result.
    ///
    /// Then SQLite may call it once and index it.
    package let isDeterministic: Bool
    package let body: @Sendable (FunctionCall) -> Void

    package init(
        _ name: String,
        argumentCount: Int?,
        isDeterministic: Bool = true,
        body: @escaping @Sendable (FunctionCall) -> Void
    ) {
        self.name = name
        self.argumentCount = argumentCount
        self.isDeterministic = isDeterministic
        self.body = body
    }

    /// Makes a function that does nothing and returns NULL.
    ///
    /// Triggers in a file may call functions of the program that made it. If a function is missing, each INSERT fails.
    package static func noOperation(_ name: String, argumentCount: Int?) -> ScalarFunction {
        ScalarFunction(name, argumentCount: argumentCount, isDeterministic: false) { $0.returnNull() }
    }

    func register(on handle: OpaquePointer) -> Int32 {
        // Innocuous functions may be called from triggers and views of a file that is not trusted.
        let flags = SQLITE_UTF8 | SQLITE_INNOCUOUS | (isDeterministic ? SQLITE_DETERMINISTIC : 0)
        return sqlite3_create_function_v2(
            handle,
            name,
            Int32(argumentCount ?? -1),
            flags,
            Unmanaged.passRetained(Box(body)).toOpaque(),
            { context, count, arguments in
                guard let context, let box = sqlite3_user_data(context) else { return }
                let call = FunctionCall(context: context, count: Int(count), arguments: arguments)
                Unmanaged<Box<@Sendable (FunctionCall) -> Void>>.fromOpaque(box).takeUnretainedValue().value(call)
            },
            nil,
            nil,
            { Unmanaged<AnyObject>.fromOpaque($0!).release() }  // SQLite hands back the pointer that it was given
        )
    }
}

/// One call of a ``ScalarFunction``: its arguments, and the place of its result.
///
/// It is valid during the call. The result is NULL unless one of the `return` methods or ``fail(_:)`` is called.
package struct FunctionCall {
    let context: OpaquePointer
    /// The number of arguments.
    package let count: Int
    let arguments: UnsafeMutablePointer<OpaquePointer?>?

    /// Argument `index`, from 0.
    ///
    /// Its ``Value/utf8`` gives the text without making a `String`.
    package subscript(index: Int) -> Value {
        precondition(index >= 0 && index < count, "argument \(index) of a function called with \(count)")
        return Value(raw: arguments?[index])
    }

    package func returnNull() {
        sqlite3_result_null(context)
    }

    package func `return`(_ value: Int64) {
        sqlite3_result_int64(context, value)
    }

    package func `return`(_ value: Bool) {
        sqlite3_result_int64(context, value ? 1 : 0)
    }

    package func `return`(_ value: Double) {
        sqlite3_result_double(context, value)
    }

    package func `return`(_ value: String) {
        var value = value
        value.withUTF8 { self.return(utf8: UnsafeRawBufferPointer($0)) }
    }

    /// Returns text made of these bytes, copied.
    package func `return`(utf8 bytes: UnsafeRawBufferPointer) {
        let start = bytes.baseAddress ?? PreparedStatement.nowhere
        strata_sqlite3_result_text_copy(context, start, UInt64(bytes.count))
    }

    /// Returns a blob made of these bytes, copied.
    package func `return`(blob bytes: UnsafeRawBufferPointer) {
        let start = bytes.baseAddress ?? PreparedStatement.nowhere
        strata_sqlite3_result_blob_copy(context, start, UInt64(bytes.count))
    }

    /// Returns one of the arguments unchanged.
    package func `return`(_ value: Value) {
        sqlite3_result_value(context, value.raw)
    }

    /// Makes the statement fail.
    package func fail(_ message: String) {
        sqlite3_result_error(context, message, -1)
    }

    /// Returns an object made from argument `index` that is kept for later rows, such as a compiled pattern.
    ///
    /// If the argument is a constant in the statement, the object is made once a statement; otherwise once a call.
    package func compiled<T: AnyObject>(_ index: Int, as type: T.Type = T.self, _ make: (Value) -> T) -> T {
        if let kept = sqlite3_get_auxdata(context, Int32(index)) {
            return Unmanaged<T>.fromOpaque(kept).takeUnretainedValue()
        }
        let made = make(self[index])
        sqlite3_set_auxdata(
            context,
            Int32(index),
            Unmanaged.passRetained(made).toOpaque(),
            { Unmanaged<AnyObject>.fromOpaque($0!).release() }  // SQLite hands back the pointer that it was given
        )
        return made
    }
}

/// An order of texts, for `COLLATE`.
package struct Collation: Sendable {
    package let name: String
    /// Compares two texts as UTF-8, which may be invalid.
    ///
    /// It must be a total order that never changes.
    package let compare: @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> ComparisonResult

    package init(
        _ name: String,
        compare: @escaping @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> ComparisonResult
    ) {
        self.name = name
        self.compare = compare
    }

    func register(on handle: OpaquePointer) -> Int32 {
        let box = Unmanaged.passRetained(Box(compare))
        let code = sqlite3_create_collation_v2(
            handle,
            name,
            SQLITE_UTF8,
            box.toOpaque(),
            { box, leftCount, left, rightCount, right in
                guard let box else { return 0 }
                typealias Compare = @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> ComparisonResult
                let compare = Unmanaged<Box<Compare>>.fromOpaque(box).takeUnretainedValue().value
                let left = UnsafeRawBufferPointer(start: left, count: Int(leftCount))
                let right = UnsafeRawBufferPointer(start: right, count: Int(rightCount))
                return Int32(compare(left, right).rawValue)
            },
            { Unmanaged<AnyObject>.fromOpaque($0!).release() }  // SQLite hands back the pointer that it was given
        )
        // If a collation is refused, SQLite does not destroy it, unlike a function.
        if code != SQLITE_OK { box.release() }
        return code
    }
}

/// A value that C code holds a pointer to.
final class Box<T> {
    let value: T

    init(_ value: T) {
        self.value = value
    }
}
