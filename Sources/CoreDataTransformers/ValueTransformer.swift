import StrataArchives
import StrataLocks
import StrataPredicates

/// The name under which a ``ValueTransformer`` is registered.
///
/// ```swift
/// let name = NSValueTransformerName("Reversed")
/// print(ValueTransformer(forName: name) == nil)
/// ```
public struct NSValueTransformerName: RawRepresentable, Hashable, Sendable {
    /// The name as text, as in an attribute's `valueTransformerName`.
    public var rawValue: String

    /// Wraps a text.
    ///
    /// - Parameter rawValue: The text.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Wraps a text.
    ///
    /// - Parameter rawValue: The text.
    public init(_ rawValue: String) {
        self.rawValue = rawValue
    }

    /// The transformer from archived data to objects of property-list classes.
    ///
    /// It is ``NSSecureUnarchiveFromDataTransformer``.
    public static let secureUnarchiveFromDataTransformerName =
        NSValueTransformerName(rawValue: "NSSecureUnarchiveFromData")

    /// The transformer from archived data to objects of any class of the program.
    ///
    /// For old models; it is not secure.
    public static let keyedUnarchiveFromDataTransformerName =
        NSValueTransformerName(rawValue: "NSKeyedUnarchiveFromData")

    /// The transformer from archived data to objects of any class of the program.
    ///
    /// For old models; it is not secure.
    public static let unarchiveFromDataTransformerName = NSValueTransformerName(rawValue: "NSUnarchiveFromData")
}

/// Turns values of one class into values of another, and perhaps back.
///
/// For a transformable attribute, subclass it so that ``transformedValue(_:)`` turns the object into `Data` and
/// ``reverseTransformedValue(_:)`` turns the data back, and register an instance before the first store is loaded:
///
/// ```swift
/// final class Reversed: ValueTransformer {
///     override class func allowsReverseTransformation() -> Bool { true }
///     override func transformedValue(_ value: Any?) -> Any? { (value as? Data).map { Data($0.reversed()) } }
///     override func reverseTransformedValue(_ value: Any?) -> Any? { transformedValue(value) }
/// }
/// ValueTransformer.setValueTransformer(Reversed(), forName: NSValueTransformerName("Reversed"))
/// ```
///
/// One instance is used by all contexts at the same time, so both methods must be safe to call from any thread. The
/// registry is safe to use from any thread.
open class ValueTransformer: NSObject {
    /// Creates a transformer.
    ///
    /// If a class is found by the name in a model, then an instance is made with this initialiser.
    public override init() {
        super.init()
    }

    // MARK: - To override

    /// The class of the results of ``transformedValue(_:)``.
    ///
    /// Default `NSObject`.
    ///
    /// - Returns: The class of all results.
    open class func transformedValueClass() -> AnyClass { NSObject.self }

    /// Whether transformed values can be converted back.
    ///
    /// Default `true`. It must be `true` for a transformable attribute.
    ///
    /// - Returns: Whether the transformer has a reverse transformation.
    open class func allowsReverseTransformation() -> Bool { true }

    /// The transformed value; `nil` if there is none.
    ///
    /// By default the value itself.
    ///
    /// - Parameter value: The value to transform; `nil` for no value.
    /// - Returns: The new value, or `nil`.
    open func transformedValue(_ value: Any?) -> Any? { value }

    /// The value from which ``transformedValue(_:)`` made `value`.
    ///
    /// By default the transformed value.
    ///
    /// If the class does not allow the reverse transformation, then the program stops.
    ///
    /// - Parameter value: A result of ``transformedValue(_:)``; `nil` for no value.
    /// - Returns: The former value, or `nil`.
    open func reverseTransformedValue(_ value: Any?) -> Any? {
        precondition(
            Self.allowsReverseTransformation(),
            "\(Self.self) does not allow reverse transformations; override reverseTransformedValue(_:) and "
                + "allowsReverseTransformation()."
        )
        return transformedValue(value)
    }

    // MARK: - Registry

    /// Registers a transformer under a name, replaces the one with that name, or (with `nil`) removes it.
    ///
    /// May be called on any thread.
    ///
    /// - Parameters:
    ///   - transformer: The transformer; `nil` removes the one with that name.
    ///   - name: The name, as in models.
    public class func setValueTransformer(_ transformer: ValueTransformer?, forName name: NSValueTransformerName) {
        TransformerRegistry.shared.set(transformer, name)
    }

    /// The names of all registered transformers, in no order.
    ///
    /// May be called on any thread.
    ///
    /// - Returns: The names, without those of classes that were never used.
    public class func valueTransformerNames() -> [NSValueTransformerName] {
        TransformerRegistry.shared.names
    }
}

/// A protocol that lets `ValueTransformer(forName:)` return the registered instance instead of a new one.
///
/// ```swift
/// let transformer = ValueTransformer(forName: .secureUnarchiveFromDataTransformerName)
/// ```
public protocol ValueTransformerLookup {}

extension ValueTransformer: ValueTransformerLookup {}

extension ValueTransformerLookup where Self: ValueTransformer {
    /// The transformer that is registered under a name.
    ///
    /// If there is none, but `name` is the name of a subclass (qualified with its module, unless the class is in the
    /// main program or in this module), then an instance is made and registered. The result is `nil` if there is
    /// neither, or if the transformer is not of the requested class.
    ///
    /// - Parameter name: The name, as in models.
    public init?(forName name: NSValueTransformerName) {
        guard let transformer = TransformerRegistry.shared.transformer(name) as? Self else { return nil }
        self = transformer
    }
}

/// The registered transformers.
///
/// Any thread may call any member.
private final class TransformerRegistry: Sendable {
    static let shared = TransformerRegistry()

    /// A transformer that can be passed between threads.
    private struct Entry: @unchecked Sendable {
        // @unchecked Sendable: custom subclasses guarantee that any thread may use their instances, see
        // ValueTransformer.
        let transformer: ValueTransformer
    }

    private let entries: Locked<[NSValueTransformerName: Entry]>

    private init() {
        let secure = Entry(transformer: NSSecureUnarchiveFromDataTransformer())
        let loose = Entry(transformer: AnyClassUnarchiveTransformer())
        entries = Locked([
            .secureUnarchiveFromDataTransformerName: secure,
            .keyedUnarchiveFromDataTransformerName: loose,
            .unarchiveFromDataTransformerName: loose,
        ])
    }

    var names: [NSValueTransformerName] { entries.withLock { Array($0.keys) } }

    func set(_ transformer: ValueTransformer?, _ name: NSValueTransformerName) {
        let entry = transformer.map(Entry.init)
        entries.withLock { $0[name] = entry }
    }

    func transformer(_ name: NSValueTransformerName) -> ValueTransformer? {
        if let known = entries.withLock({ $0[name] }) { return known.transformer }
        guard let found = Self.classNamed(name.rawValue) else { return nil }
        // It is made outside the lock, because it runs custom code; if two threads make one, then the first is used.
        let made = Entry(transformer: TransformerMaking.make(found))
        return entries.withLock { entries in
            if let known = entries[name] { return known }
            entries[name] = made
            return made
        }.transformer
    }

    private static func classNamed(_ name: String) -> ValueTransformer.Type? {
        if name == "NSSecureUnarchiveFromDataTransformer" { return NSSecureUnarchiveFromDataTransformer.self }
        let bare = name.hasPrefix(".") ? String(name.dropFirst()) : name
        let candidates = bare.contains(".") ? [bare] : ["\(mainModule).\(bare)", bare]
        if let found = candidates.lazy.compactMap({ FoundationClasses.named($0) as? ValueTransformer.Type }).first {
            return found
        }
        // This finds a class of another module, or one that is private or inside of another type.
        let own = bare.split(separator: ".").last.map(String.init) ?? bare
        let found = ClassRecords.classes(named: own).compactMap { $0 as? ValueTransformer.Type }.filter {
            let full = String(reflecting: $0)
            return full == bare || full.hasSuffix("." + bare)
        }
        return found.count == 1 ? found[0] : nil
    }

    /// The module of the main program, in which bare names are looked up.
    private static let mainModule: String = {
        let name = Bundle.main.executableURL?.lastPathComponent ?? ""
        return String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }()
}

/// Makes transformers of classes that are known only by name.
///
/// Swift calls `init()` on a class in a variable only if the initialiser is `required`. But then no subclass could have
/// other initialisers, or write `override init()`, as on Apple's platforms. The call that Swift makes is the same in
/// both cases: it takes the initialiser from the class's table, at the place of `NSObject`'s initialiser. So, in the
/// type of the call, a class that declares the initialiser as required replaces the transformer's class. A class
/// without `init()` stops the program, with its name.
enum TransformerMaking {
    // It is not optimised, so that the compiler does not choose the initialiser from the type of the call.
    @_optimize(none)
    static func make(_ type: ValueTransformer.Type) -> ValueTransformer {
        let made: NSObject = unsafeBitCast(type, to: _TransformerStandIn.Type.self).init()
        // The object has the class `type`.
        return unsafeDowncast(made, to: ValueTransformer.self)
    }
}

/// Replaces the class of a transformer in ``TransformerMaking``; it has no other use.
///
/// It is open: if no other code could inherit from the class, then the compiler might call the initialiser without
/// using the table.
@_documentation(visibility: internal)
open class _TransformerStandIn: NSObject {
    /// Makes an object without a use.
    public required override init() {
        super.init()
    }
}
