import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/** A javaagent of somebody else: it tells that it runs, and which class of the application it sees. */
public final class Second {
    public static void premain(String arguments, Instrumentation instrumentation) {
        System.out.println("second agent runs with " + arguments);
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(
                    ClassLoader loader, String name, Class<?> known, ProtectionDomain domain, byte[] bytes) {
                if ("Main".equals(name)) {
                    System.out.println("second agent has seen the class Main");
                }
                return null;
            }
        });
    }
}
